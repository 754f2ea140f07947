"""The SQL of the shipped pair has what the documents ask for, and each step that the engine runs."""

from __future__ import annotations

import re

import pytest
from tests.support.rule_tables import compile_shipped

from headgate.compile.reconcile.judging import render_rollup
from headgate.compile.reconcile.tables import CHANGES, STATES
from headgate.compile.rules.model import JudgedRule
from headgate.compile.script import Script, parse_script
from headgate.spec.ruleset import Severity

PLAIN = "clock revision table source view accept states partials refuse outcomes counts reading"
BOUND = ("timed view", "states view", "bound states", "verdict view", "partial view")
STEPS = (*PLAIN.split(), *BOUND)


@pytest.fixture(scope="module")
def script() -> Script:
    return parse_script("business", compile_shipped("business").text)


def view(script: Script, name: str) -> str:
    return next(s.sql for s in script.steps if f"TEMPORARY VIEW {name}" in s.sql)


def test_every_step_that_the_engine_asks_for_is_there(script: Script) -> None:
    assert {step.name for step in script.steps} == set(STEPS)
    for step in ("accept", "states", "partials", "refuse"):
        assert script.one(step).startswith("INSERT INTO lake.")


def test_s1_26_the_view_of_topic1_has_the_columns_of_the_documents(script: Script) -> None:
    text = view(script, "topic1_onprem AS")
    for column in ("event_id", "hash_onprem", "event_ts"):
        assert re.search(rf"^  {column},$", text, re.M)
    assert "'partitionColumns ARRAY<STRUCT<type: STRING, value: STRING>>'" in text
    assert re.search(r"\.partitionColumns\s+AS partitionColumns,", text)
    assert "'subscribe' 'topic1'" in view(script, "topic1_onprem_source")


def test_s1_27_the_view_of_topic2_has_the_columns_of_the_documents(script: Script) -> None:
    text = view(script, "topic2_cloud AS")
    for column in ("pk", "hash_cloud", "cloud_ts"):
        assert re.search(rf"^  {column},$", text, re.M)
    assert "'subscribe' 'topic2'" in view(script, "topic2_cloud_source")


def test_s1_28_topic1_with_pk_has_the_key_and_no_list(script: Script) -> None:
    text = view(script, "topic1_with_pk")
    assert "EXCEPT (partitionColumns)" in text
    assert text.endswith("FROM topic1_onprem")


def test_s1_29_dq_hash_check_has_the_columns_of_the_documents(script: Script) -> None:
    columns = re.findall(r"^  (\S+?),?$", view(script, "dq_hash_check"), re.M)
    assert columns == ["t1.event_id", "pk", "hash_onprem", "hash_cloud", "dq_status"]


def test_a_rule_s_own_status_keeps_the_roll_up_of_its_verdict_unless_it_is_an_error() -> None:
    given: list[tuple[str, Severity]] = [("TOO_HEAVY", "WARN"), ("MISSING_CLOUD", "WARN")]
    rules = [JudgedRule("r", "why", status, "m", severity, "keep") for status, severity in given]
    assert render_rollup(rules).splitlines() == [
        "CASE",
        "  WHEN _verdict.status = 'MISSING_CLOUD' THEN 'missing'",
        "  WHEN _verdict.severity = 'ERROR' THEN 'invalid'",
        "  ELSE _row.rollup",
        "END",
    ]


def test_what_is_kept_does_not_depend_on_rules(script: Script) -> None:
    tables = "\n".join(script.named("table"))
    for name in (*STATES, *CHANGES):
        assert re.search(rf"^  {name} ", tables, re.M), name


def test_verdicts_ask_for_no_clock_but_the_batch_s(script: Script) -> None:
    """Permanent views judge now; everything else judges at the time of the batch."""
    for step in script.steps:
        if step.name not in ("clock", "reading"):
            assert "current_timestamp" not in step.sql
        if step.name == "reading":
            assert "session." not in step.sql
