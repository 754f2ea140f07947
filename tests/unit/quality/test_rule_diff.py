"""What two revisions of rules say differently: in words, and of rows."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.support.quality_evidence import CANARY, NOON, judged_table, rule_table

from headgate.conditions.parser import parse_condition
from headgate.declarations.types import STRING, parse_type
from headgate.errors import UsageError
from headgate.quality.compile.resolve import JudgedTable
from headgate.quality.diff.changes import RuleDiff, diff_text, row_changes, rule_changes
from headgate.quality.diff.rows import (
    UNDECLARED,
    Given,
    declared_fields,
    masked_row,
    rows_of_file,
    typed_row,
    with_key,
)
from headgate.quality.spec.rule_set import RuleColumn, RuleSource, RuleTable


def changed(table: JudgedTable, name: str, **values: object) -> JudgedTable:
    rules = [replace(r, **values) if r.name == name else r for r in table.rules]
    return replace(table, rules=tuple(rules))


def high(table: JudgedTable, limit: int) -> JudgedTable:
    condition = parse_condition(f"amount > {limit}", table.types)
    return changed(table, "amount_high", condition=condition)


def row(n: int, amount: object = 5.0, mail: object = CANARY) -> Given:
    fields = {"order_id": f"k{n}", "amount": amount, "mail": mail, "ts": "2026-03-01T12:00:00"}
    return Given(str(n), {"onprem": fields})


def test_the_same_rules_have_no_changes() -> None:
    assert rule_changes(judged_table(), judged_table()) == ()
    assert "have the same rules" in diff_text(RuleDiff("orders", "a", "b", ()))


def test_a_condition_that_changed_is_told_in_words_with_what_it_was() -> None:
    (change,) = rule_changes(judged_table(), high(judged_table(), 500))
    assert (change.name, change.change) == ("amount_high", "changed")
    assert change.words == ("matches when amount is above 500 (was: amount is above 1000)",)


def test_added_removed_and_moved_rules_are_told() -> None:
    old = judged_table()
    new = replace(old, rules=(old.rules[2], old.rules[0], old.rules[3]))
    kinds = {change.name: change for change in rule_changes(old, new)}
    assert kinds["amount_below_zero"].change == "removed"
    assert kinds["amount_high"].words == ("decides at place 1, before at 2 of those in both",)
    assert {c.change for c in rule_changes(new, old)} == {"added", "changed"}
    assert {c.change for c in rule_changes(None, old)} == {"added"}


def test_what_a_rule_emits_is_compared_too() -> None:
    new = changed(judged_table(), "no_mail", severity="INFO", status="NO_MAIL")
    (change,) = rule_changes(judged_table(), new)
    assert change.words == ("status: INVALID → NO_MAIL", "severity: ERROR → INFO")


def test_rows_whose_status_changes_are_counted_by_rule_and_by_status() -> None:
    rows = [row(1), row(2, 700.0), row(3, 2000.0), row(4, -1), row(5, mail=None)]
    found = row_changes(judged_table(), high(judged_table(), 500), rows, NOON)
    assert (found.rows, found.changed, found.unreadable) == (5, 1, 0)
    assert [(s.before, s.after, s.rows) for s in found.statuses] == [("VALID", "QUARANTINE", 1)]
    (count,) = found.counts
    assert (count.rule, count.n_before, count.n_after) == ("amount_high", 1, 2)
    assert (count.matched_before, count.matched_after) == (1, 2)


def test_a_rule_may_hold_more_often_and_change_no_status() -> None:
    found = row_changes(judged_table(), high(judged_table(), 500), [row(1, 700.0, mail=None)], NOON)
    assert found.changed == 0
    assert [(c.n_before, c.n_after, c.matched_before, c.matched_after) for c in found.counts] == [
        (0, 0, 0, 1)
    ]


def test_a_value_that_does_not_fit_is_counted_and_not_quoted() -> None:
    found = row_changes(judged_table(), judged_table(), [row(1, CANARY), row(2)], NOON)
    assert (found.rows, found.unreadable) == (1, 1)
    assert CANARY not in repr(found)


def test_sensitive_values_are_masked_by_what_either_revision_says() -> None:
    old, new = judged_table(table=rule_table(sensitive=())), high(judged_table(), 1)
    found = row_changes(old, new, [row(n, 50.0) for n in range(40)], NOON)
    assert found.changed == 40
    assert len(found.samples) == 20
    assert CANARY not in repr(found)
    text = diff_text(RuleDiff("orders", "a", "b", rule_changes(old, new), found))
    assert "mail=***" in text
    assert CANARY not in text


def test_a_sensitive_key_is_masked() -> None:
    table = rule_table(sensitive=("order_id",))
    found = row_changes(
        judged_table(table=table), high(judged_table(table=table), 1), [row(1, 50.0)], NOON
    )
    assert found.samples[0].key == "***"
    assert "k1" not in repr(found)


def test_of_fields_that_are_not_declared_only_the_names_are_shown() -> None:
    given = row(1, 50.0)
    extra = {**given.sides["onprem"], "ssn": CANARY, "address": {"street": CANARY}}
    found = row_changes(
        judged_table(), high(judged_table(), 1), [Given("1", {"onprem": extra})], NOON
    )
    (sample,) = found.samples
    assert sample.row["(not declared)"] == "ssn, address"
    text = diff_text(RuleDiff("orders", "a", "b", (), found))
    assert "ssn" in text
    assert CANARY not in text + repr(found)


@pytest.mark.parametrize("declared", [True, False])
def test_a_sensitive_key_is_not_shown_where_it_stands_in_the_record(declared: bool) -> None:
    plain = rule_table(sensitive=("order_id",))
    columns = {**plain.first.columns, **({"p": RuleColumn(STRING)} if declared else {})}
    source = replace(plain.first, columns=columns, pk_path="p[type='PK'].value")
    table = judged_table(table=replace(plain, sources={"onprem": source}))
    sent = {"p": [{"type": "PK", "value": CANARY}], "amount": 50.0, "mail": "m"}
    given = Given("1", {"onprem": with_key(table.table, source, sent)})
    found = row_changes(table, high(table, 1), [given], NOON)
    (sample,) = found.samples
    assert (sample.key, sample.row["order_id"]) == ("***", "***")
    assert CANARY not in diff_text(RuleDiff("orders", "a", "b", (), found)) + repr(found)


def test_the_fields_of_a_pair_are_declared_by_source() -> None:
    source = RuleSource(table="in", columns={"n": RuleColumn(STRING)})
    other = RuleSource(table="there", columns={"m": RuleColumn(STRING)})
    table = RuleTable(name="pair", pk="id", sources={"onprem": source, "cloud": other})
    given = Given("1", {"onprem": {"id": "a", "n": "1"}, "cloud": {"id": "a", "n": CANARY}})
    shown = masked_row(given, declared_fields(table), frozenset())
    assert shown == {"onprem.id": "a", "onprem.n": "1", "cloud.id": "a", UNDECLARED: "cloud.n"}


def test_samples_are_of_every_change_and_the_same_each_time() -> None:
    rows = [row(n, 50.0, mail=None if n % 2 else "x") for n in range(60)]
    old = judged_table()
    new = changed(high(old, 1), "no_mail", status="NO_MAIL")
    one, other = (row_changes(old, new, rows, NOON) for _ in range(2))
    assert one == other
    assert {(s.before, s.after) for s in one.samples} == {
        ("VALID", "QUARANTINE"),
        ("INVALID", "NO_MAIL"),
    }


def test_the_fields_that_matter_stand_first() -> None:
    found = row_changes(judged_table(), high(judged_table(), 1), [row(1, 50.0)], NOON)
    assert next(iter(found.samples[0].row)) == "amount"


def test_unique_sees_the_rows_in_their_order() -> None:
    new = judged_table()
    old = replace(new, rules=tuple(r for r in new.rules if r.unique is None))
    found = row_changes(old, new, [row(1), row(1), row(2)], NOON)
    assert [(s.before, s.after, s.rows) for s in found.statuses] == [("VALID", "DUPLICATE", 1)]


@pytest.mark.parametrize(
    "text", ["2026-03-01T12:00:00", "2026-03-01 12:00:00.5", "2026-03-01T12:00:00Z"]
)
def test_times_are_read_with_or_without_a_zone(text: str) -> None:
    given = Given("1", {"onprem": {"order_id": "a", "ts": text}})
    found = typed_row(judged_table(), given)
    assert found is not None
    assert str(found["ts"]).startswith("2026-03-01 12:00:00")


def test_a_key_that_stands_deeper_is_found() -> None:
    source = RuleSource(
        table="in",
        columns={"action": RuleColumn(STRING)},
        topic="t",
        pk_path="parts[type='PK'].value",
    )
    table = RuleTable(name="deep", pk="id", sources={"onprem": source})
    one = {"parts": [{"type": "CK", "value": 1}, {"type": "PK", "value": "k9"}]}
    assert with_key(table, source, one)["id"] == "k9"
    assert with_key(table, source, {"parts": None})["id"] is None


def test_the_last_rows_of_a_jsonl_file(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    lines = [json.dumps({"order_id": f"k{n}"}) for n in range(50)]
    file.write_text("\n".join([*lines, "no json", "[1]", ""]))
    found = rows_of_file(file, rule_table(), 10)
    assert [one.sides["onprem"]["order_id"] for one in found.rows] == [
        f"k{n}" for n in range(42, 50)
    ]
    assert found.unreadable == 2


def test_the_last_rows_of_a_parquet_file_are_typed(tmp_path: Path) -> None:
    file = tmp_path / "rows.parquet"
    columns = {
        "order_id": [f"k{n}" for n in range(30)],
        "amount": [float(n) for n in range(30)],
        "ts": [datetime(2026, 3, 1, 12)] * 30,
    }
    pq.write_table(pa.table(columns), file, row_group_size=7)
    found = rows_of_file(file, rule_table(), 9)
    assert [one.sides["onprem"]["order_id"] for one in found.rows] == [
        f"k{n}" for n in range(21, 30)
    ]
    typed = typed_row(judged_table(), found.rows[-1])
    assert typed is not None
    assert typed["amount"] == 29.0
    assert row_changes(judged_table(), high(judged_table(), 25), found.rows, NOON).rows == 9


def test_a_pair_of_a_file_has_both_sides(tmp_path: Path) -> None:
    kinds = {"id": parse_type("STRING")}
    sides = {
        side: RuleSource(
            table=side, columns={n: RuleColumn(k) for n, k in kinds.items()}, alias=alias
        )
        for side, alias in (("onprem", "t1"), ("cloud", "t2"))
    }
    table = RuleTable(name="pair", pk="id", sources=sides)  # type: ignore[arg-type]
    file = tmp_path / "pairs.jsonl"
    file.write_text(
        '{"onprem": {"id": "a"}, "cloud": {"id": "a"}}\n{"cloud": {"id": "b"}}\n{"x": 1}\n'
    )
    found = rows_of_file(file, table, 10)
    assert [sorted(one.sides) for one in found.rows] == [["cloud", "onprem"], ["cloud"]]
    assert found.unreadable == 1


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="neither Parquet nor JSON"):
        rows_of_file(tmp_path / "rows.csv", rule_table(), 5)
