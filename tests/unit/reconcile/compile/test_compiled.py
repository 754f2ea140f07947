"""The SQL of the shipped pairs has what the documents ask for, and each view that the engine binds."""

from __future__ import annotations

import re

import pytest
from tests.support.rule_tables import compile_shipped, script_of, shipped_table

from headgate.core.sql.script import Script
from headgate.quality.compile.resolve import JudgedRule
from headgate.quality.compile.tables import names_of
from headgate.quality.spec.rule_set import Severity
from headgate.reconcile.compile.file import render_rollup
from headgate.reconcile.compile.states import CHANGES, STATES, reconcile_tables


@pytest.fixture(scope="module")
def script() -> Script:
    return script_of(compile_shipped("business"), shipped_table("business"))


def test_the_engine_finds_each_view_that_it_binds_to_states_of_its_own(script: Script) -> None:
    for name in ("timed", "states", "facts", "decided", "verdicts", "results"):
        assert f"VIEW dq_{name}_business AS" in script.view(f"dq_{name}_business")
    assert "FROM dq_window_states_business" in script.one("states")
    assert "FROM dq_changes_business" in script.one("accept")


def test_s1_26_the_view_of_topic1_has_the_columns_of_the_documents(script: Script) -> None:
    text = script.view("topic1_onprem")
    read = script.view("topic1_onprem_read")
    for column in ("event_id STRING", "hash_onprem STRING", "event_ts TIMESTAMP"):
        assert column in read
    unused = re.findall(r"EXCEPT \(([^)]+)\)", text)[0].split(", ")
    assert {"event_id", "hash_onprem", "event_ts"}.isdisjoint(unused)
    assert "'partitionColumns ARRAY<STRUCT<type: STRING, value: STRING>>'" in text
    assert re.search(r"\.partitionColumns\s+AS partitionColumns\n", text)
    (source,) = [sql for sql in script.named("source") if "VIEW topic1_onprem_source" in sql]
    assert "'subscribe' 'topic1'" in source


def test_s1_27_the_view_of_topic2_has_the_columns_of_the_documents(script: Script) -> None:
    read = script.view("topic2_cloud_read")
    for column in ("pk STRING", "hash_cloud STRING", "cloud_ts TIMESTAMP"):
        assert column in read
    assert script.view("topic2_cloud").partition("FROM ")[2].startswith("topic2_cloud_read\n")
    (source,) = [sql for sql in script.named("source") if "VIEW topic2_cloud_source" in sql]
    assert "'subscribe' 'topic2'" in source


def test_s1_28_topic1_with_pk_has_the_key_and_no_list(script: Script) -> None:
    text = script.view("topic1_with_pk")
    assert "EXCEPT (partitionColumns)" in text
    assert text.endswith("FROM topic1_onprem")


def test_s1_29_dq_hash_check_has_the_columns_of_the_documents(script: Script) -> None:
    columns = re.findall(r"^  (?:.* AS )?(\S+?),?$", script.view("dq_hash_check"), re.M)
    assert columns == ["t1.event_id", "pk", "hash_onprem", "hash_cloud", "dq_status"]


def test_a_rule_s_own_status_keeps_the_roll_up_of_its_verdict_unless_it_is_an_error() -> None:
    given: list[tuple[str, Severity]] = [("TOO_HEAVY", "WARN"), ("MISSING_CLOUD", "WARN")]
    rules = [JudgedRule("r", "why", status, "m", severity, "keep") for status, severity in given]
    first, *branches = render_rollup(rules).splitlines()[1:]
    assert first == (
        "  WHEN _rule.status IN ('TOO_HEAVY') AND _rule.severity = 'ERROR' THEN 'invalid'"
    )
    own = "IF(_rule.status IN ('TOO_HEAVY'), _row.status, dq_status) IN ("
    tried = [branch for branch in branches if branch.startswith("  WHEN ")]
    assert all(branch.startswith(f"  WHEN {own}") for branch in tried)
    assert ["MISSING_CLOUD" in branch for branch in tried] == [False, True, False]
    plain = render_rollup(shipped_table("customer").rules)
    assert "_rule" not in plain
    assert "WHEN dq_status IN ('MATCH', 'LATE_MATCH', 'DELETE_EVENT') THEN 'valid'" in plain


def test_no_rule_judges_a_key_that_waits() -> None:
    found = script_of(compile_shipped("customer"), shipped_table("customer"))
    text = found.view("dq_verdicts_customer")
    assert (
        "IF(NOT due AND _open.status IN ('PENDING', 'DELETE_PENDING'), NULL, _rule) AS _rule"
        in (text)
    )
    assert "IF(due, _final, _open) AS _row" in text


def test_a_key_counts_into_the_window_of_its_arrival_or_of_the_deadline_it_waited_for(
    script: Script,
) -> None:
    text = " ".join(script.view("dq_verdicts_business").split())
    waited = "due AND _open.status IN ('PENDING', 'DELETE_PENDING') AND judged_at >= deadline"
    arrived = "greatest(onprem_first.read_at, cloud_first.read_at)"
    assert f"IF({waited}, deadline, {arrived}) AS _at" in text


def test_each_record_has_one_letter_whichever_topic_it_is_of(script: Script) -> None:
    letters = script.one("refuse").split("UNION ALL")
    assert [re.findall(r"^FROM (\S+)", letter, re.M) for letter in letters] == [
        ["topic1_onprem_read"],
        ["topic2_cloud_read"],
    ]
    assert all(letter.count("WHERE _reason_code IS NOT NULL") == 1 for letter in letters)


def test_what_is_kept_does_not_depend_on_rules() -> None:
    tables = "\n".join(reconcile_tables(names_of(shipped_table("business").table)))
    for name in (*STATES, *CHANGES):
        assert re.search(rf"^  {name} ", tables, re.M), name


def test_verdicts_ask_for_no_clock_but_the_batch_s(script: Script) -> None:
    """Only the default of the clock, for whoever runs the file by hand, is the time of the run."""
    for step in script.steps:
        assert ("current_timestamp" in step.sql) == ("VARIABLE batch_time" in step.sql)
