"""A `reconcile:` section that cannot work is refused, with its line and what to write."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path

import pytest

from headgate.errors import DeclarationError
from headgate.quality.spec.loader import load_rules
from headgate.quality.spec.reconcile_section import HORIZON, Reconcile
from headgate.quality.spec.rule_set import RuleSet

ROOT = Path(__file__).parents[3]


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    for folder in ("rules", "contracts"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    return tmp_path / "rules" / "topic1.yml"


def line(text: str, words: str) -> int:
    return next(at for at, found in enumerate(text.splitlines(), 1) if words in found)


CASES = {
    "a horizon that forgets too soon": (
        "horizon: 1 HOUR",
        "horizon: 10 MINUTES",
        "state is forgotten after 10 MINUTES, before a key is due",
        "Write 15 MINUTES or more",
    ),
    "a contract that is not there": (
        "contract: contracts/business_table.hash.yml",
        "contract: contracts/busines_table.hash.yml",
        "there is no contract `contracts/busines_table.hash.yml`",
        "Did you mean `contracts/business_table.hash.yml`?",
    ),
    "a column of the hash's version that is not there": (
        "hash_version: hash_version",
        "hash_version: hash_versio",
        "there is no column `hash_versio` in the source `onprem`",
        "Did you mean `hash_version`?",
    ),
    "a column of the hash's version that is no number": (
        "          hash_version: INT",
        "          hash_version: STRING",
        "`hash_version` is STRING in the source `onprem`",
        "Declare it as INT.",
    ),
    "a view with a compiled name": (
        "view: dq_hash_check",
        "view: dq_results_business",
        "`dq_results_business` is the name of another view",
        "Use another.",
    ),
    "a view with a source's name": (
        "pk_view: topic1_with_pk",
        "pk_view: Topic2_Cloud",
        "`Topic2_Cloud` is the name of another view",
        "Use another.",
    ),
    "a view with no name": (
        "view: dq_hash_check",
        "view: hash check",
        "`hash check` is not a name for a view",
        "Use letters",
    ),
    "counts that would be read again": (
        "status_topic: dq-metrics",
        "status_topic: topic2",
        "`topic2` is a topic that is read here",
        "Name another.",
    ),
    "rows in two places": (
        "{cassandra: cloud_keyspace.business_table, key",
        "{cassandra: cloud_keyspace.business_table, iceberg: a.b, key",
        "rows are read from one place, and here stands iceberg and cassandra",
        "Write iceberg, parquet or cassandra.",
    ),
    "rows of a table without a keyspace": (
        "cassandra: cloud_keyspace.business_table",
        "cassandra: business_table",
        "`business_table` is not of the form keyspace.table",
        "Write both parts",
    ),
    "a table instead of a topic": (
        "topic: topic2",
        "iceberg: a.topic2",
        "the source `cloud` is a table, and two sources are reconciled by their topics",
        "Compare two tables with `headgate reconcile tables`.",
    ),
    "a sensitive action": (
        "          action: STRING",
        "          action: {type: STRING, sensitive: true}",
        "`action` is sensitive, and states, audit and reports show what a side says",
        "Leave the column out",
    ),
    "a sensitive hash": (
        "          hash_onprem: STRING",
        "          hash_onprem: {type: STRING, sensitive: true}",
        "`hash_onprem` is sensitive, and states, audit and reports show what a side says",
        "Leave the column out",
    ),
    "a sensitive key of the other side": (
        "columns: {pk: STRING,",
        "columns: {pk: {type: STRING, sensitive: true},",
        "`pk` is sensitive, and states, audit and reports show what a side says",
        "Leave the column out",
    ),
    "a sensitive column": (
        "          event_id: STRING",
        "          event_id: {type: STRING, sensitive: true}",
        "`event_id` is sensitive, and states, audit and reports show what a side says",
        "Leave the column out",
    ),
    "an action that is not there": (
        "hash_version: hash_version",
        "hash_version: hash_version\n      action: acton",
        "there is no column `acton` in the source `onprem`",
        "Did you mean `action`?",
    ),
}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_cannot_work_is_refused_with_its_line(rules: Path, case: str) -> None:
    old, new, what, fix = CASES[case]
    text = rules.read_text()
    assert old in text
    changed = text.replace(old, new, 1)
    rules.write_text(changed)
    with pytest.raises(DeclarationError) as refused:
        load_rules(rules, {})
    fault = next(f for f in refused.value.faults if f.what == what)
    assert fix in fault.fix
    assert fault.line is not None
    assert fault.line >= line(changed, "tables:")


def test_what_is_sent_again_by_itself_must_be_readable(rules: Path) -> None:
    text = rules.read_text()
    start = text.index("      rows:")
    end = text.index("      audit:")
    rules.write_text(f"{text[:start]}      repair: {{automatic: [MISMATCH]}}\n{text[end:]}")
    with pytest.raises(DeclarationError) as refused:
        load_rules(rules, {})
    assert [fault.field for fault in refused.value.faults] == [
        "tables[0].reconcile.repair.automatic"
    ]


def test_rules_of_a_pair_keep_its_verdicts(rules: Path) -> None:
    rule = (
        "    on_fail: stop\n    rules:\n"
        "      - {name: odd, when: \"{t1}.event_id = 'x'\", on_fail: dead_letter,"
        " emit: {dq_status: PENDING}}\n"
    )
    rules.write_text(rules.read_text() + rule)
    with pytest.raises(DeclarationError) as refused:
        load_rules(rules, {})
    assert {fault.field for fault in refused.value.faults} == {
        "tables[0].rules[0].emit.dq_status",
        "tables[0].rules[0].on_fail",
        "tables[0].on_fail",
    }


def test_an_empty_section_takes_all_defaults(rules: Path) -> None:
    text = rules.read_text()
    rules.write_text(text[: text.index("    reconcile:")] + "    reconcile: {}\n")
    assert load_rules(rules, {}).value.tables[0].reconcile == Reconcile()


@pytest.mark.parametrize("algorithm", ["MD5", "SHA-512"])
def test_a_contract_whose_hashes_have_not_64_digits_is_refused(rules: Path, algorithm: str) -> None:
    contract = rules.parent.parent / "contracts" / "business_table.hash.yml"
    text = contract.read_text(encoding="utf-8")
    old = f"hash_version: 1\nalgorithm: {algorithm}"
    contract.write_text(text.replace("hash_version: 2", old), encoding="utf-8")
    with pytest.raises(DeclarationError) as refused:
        load_rules(rules, {})
    (fault,) = refused.value.faults
    assert f"hashes by {algorithm}, so no hash would be valid" in fault.what
    assert "algorithm: SHA-256" in fault.fix


DOCUMENTS = (ROOT / "rules.yaml").read_text(encoding="utf-8")


def without_section(folder: Path, text: str) -> RuleSet:
    """A rule file whose pairs say nothing of times."""
    assert "reconcile:" not in text
    path = folder / "rules.yaml"
    path.write_text(text, encoding="utf-8")
    return load_rules(path, {}).value


def test_the_documents_own_pairs_wait_a_window_and_a_watermark(tmp_path: Path) -> None:
    for table in without_section(tmp_path, DOCUMENTS).tables:
        assert table.reconcile is not None
        assert table.reconcile.window == timedelta(seconds=10)
        assert table.reconcile.grace == timedelta(seconds=5)
        assert table.reconcile.horizon == HORIZON


def test_the_greatest_watermark_of_both_sides_is_the_grace(tmp_path: Path) -> None:
    text = DOCUMENTS.replace("watermark: 5 SECONDS", "watermark: 7 MINUTES", 1)
    customer, orders = without_section(tmp_path, text).tables
    assert (customer.reconcile or Reconcile()).grace == timedelta(minutes=7)
    assert (orders.reconcile or Reconcile()).grace == timedelta(seconds=5)


@pytest.mark.parametrize("window", ["10 SECONDS", "59 MINUTES", "1 HOUR", "2 DAYS"])
def test_the_horizon_is_no_shorter_than_window_and_grace(tmp_path: Path, window: str) -> None:
    text = DOCUMENTS.replace("window: 10 SECONDS", f"window: {window}")
    for table in without_section(tmp_path, text).tables:
        assert table.reconcile is not None
        wait = table.reconcile.window + table.reconcile.grace
        assert table.reconcile.horizon == max(HORIZON, wait)


def test_a_section_that_is_written_keeps_its_times_and_one_source_has_none() -> None:
    (business,) = load_rules(ROOT / "rules" / "topic1.yml", {}).value.tables
    assert business.reconcile is not None
    assert business.reconcile.window == timedelta(minutes=10)
    (taxi,) = load_rules(ROOT / "rules" / "taxi.yml", {"TOPIC": "trips"}).value.tables
    assert taxi.reconcile is None


def test_a_pair_over_a_table_is_refused_without_a_section_too(tmp_path: Path) -> None:
    text = DOCUMENTS.replace("topic: cloud.customer.hash", "iceberg: cloud.customer")
    with pytest.raises(DeclarationError) as refused:
        without_section(tmp_path, text)
    (fault,) = refused.value.faults
    assert fault.field == "tables[0].sources.cloud.iceberg"
    assert fault.line == line(text, "iceberg: cloud.customer")
    assert "`headgate reconcile tables`" in fault.fix


def test_a_rule_of_such_a_pair_makes_no_dead_letter(tmp_path: Path) -> None:
    emit = "emit: {dq_status: DELETE_EVENT"
    text = DOCUMENTS.replace(emit, f"on_fail: dead_letter\n    {emit}")
    with pytest.raises(DeclarationError) as refused:
        without_section(tmp_path, text)
    assert {fault.what for fault in refused.value.faults} == {
        "a verdict is kept, whatever rules say of it"
    }
