"""Rows judged in Python: what rules, their order and the verdict say of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.support.rule_files import ONE, PAIR, load_rule_file

from headgate.conditions.evaluator.values import Value
from headgate.quality.compile.resolve import JudgedTable, judged
from headgate.quality.evaluator import FieldRefusal, Seen, judge_row, judge_rows, row_values
from headgate.quality.spec.loader import load_rules

ROOT = Path(__file__).parents[4]
NOW = datetime(2024, 1, 1, tzinfo=UTC)
GOOD, OTHER = "a" * 64, "b" * 64


def table(folder: Path, *rules: str) -> JudgedTable:
    return load_rule_file(folder, ONE + "".join(f"      - {rule}\n" for rule in rules)).tables[0]


def test_the_first_rule_that_matches_gives_the_status_and_all_are_named(tmp_path: Path) -> None:
    one = table(tmp_path, "{name: a, when: total > 1}", "{name: b, when: items > 1}")
    both = judge_row(one, {"total": 5.0, "items": 5}, NOW)
    second = judge_row(one, {"total": 0.0, "items": 5}, NOW)
    assert (both.metric, both.rules) == ("a", ("a", "b"))
    assert (second.metric, second.rules) == ("b", ("b",))
    assert judge_row(one, {"total": None}, NOW).status == "VALID"


def test_the_batchs_time_is_what_it_is_said_to_be(tmp_path: Path) -> None:
    rule = "{name: a, type: timestamp_freshness, field: at, max_age_seconds: 60}"
    one = table(tmp_path, rule)
    ages = [judge_row(one, {"at": NOW - timedelta(seconds=s)}, NOW).status for s in (60, 61)]
    assert ages == ["VALID", "INVALID"]


def test_a_key_within_the_horizon_is_a_duplicate(tmp_path: Path) -> None:
    one = table(tmp_path, "{name: a, type: unique, field: email, horizon: 1 HOUR}")
    rows: list[dict[str, Value]] = [
        {"email": email, "at": NOW + timedelta(minutes=minutes)}
        for email, minutes in [("x", 0), ("y", 1), ("x", 60), ("x", 200), (None, 201), (None, 202)]
    ]
    said = [verdict.status for verdict in judge_rows(one, rows, NOW)]
    assert said == ["VALID", "VALID", "INVALID", "VALID", "VALID", "VALID"]
    assert judge_row(one, rows[0], NOW, Seen()).status == "VALID"


def test_rows_of_a_topic_count_as_they_come_and_those_of_a_table_by_time(tmp_path: Path) -> None:
    text = ONE + "      - {name: a, type: unique, field: email, horizon: 5 MINUTES}\n"
    lake = text.replace("topic: orders.raw", "iceberg: silver.orders")
    rows: list[dict[str, Value]] = [
        {"email": "x", "at": NOW + timedelta(minutes=minutes)} for minutes in (0, 8, 4)
    ]
    said = [
        [
            verdict.status
            for verdict in judge_rows(load_rule_file(tmp_path, form).tables[0], rows, NOW)
        ]
        for form in (text, lake)
    ]
    assert said == [["VALID", "VALID", "INVALID"], ["VALID", "INVALID", "INVALID"]]


@pytest.mark.parametrize(
    ("pair", "status"),
    [
        ({"onprem": {"h1": GOOD}, "cloud": {"h2": GOOD}}, "MATCH"),
        ({"onprem": {"h1": None}, "cloud": {"h2": GOOD}}, "INVALID_HASH"),
        ({"onprem": {"h1": GOOD, "action": "DELETE"}, "cloud": {"h2": GOOD}}, "ZOMBIE"),
        ({"onprem": {"h1": GOOD}, "cloud": {"h2": OTHER}}, "MISMATCH"),
        ({"onprem": {"h1": GOOD}}, "MISSING_CLOUD"),
        ({"onprem": {"h1": GOOD}, "cloud": {"h2": None}}, "MISSING_CLOUD"),
        ({"cloud": {"h2": GOOD}}, "MISSING_ONPREM"),
        ({"onprem": {"h1": "x"}, "cloud": {"h2": GOOD}}, "INVALID_HASH"),
        ({"onprem": {"h1": "x"}}, "INVALID_HASH"),
        ({"onprem": {"h1": GOOD, "action": "DELETE"}}, "DELETE_EVENT"),
    ],
)
def test_a_pair_that_no_rule_matches_has_a_verdict(
    tmp_path: Path, pair: dict[str, dict[str, object]], status: str
) -> None:
    one = load_rule_file(tmp_path, PAIR + "  - {name: never_here, when: t2.late}\n").tables[0]
    given = {side: {"customer_id": "C", **row} for side, row in pair.items()}
    found = judge_row(one, row_values(one, given), NOW)
    assert (found.status, found.rules) == (status, ())
    assert found.severity == ("INFO" if status in ("MATCH", "DELETE_EVENT") else "ERROR")


def test_the_shipped_rules_give_every_verdict_there_is() -> None:
    with_rules = judged(load_rules(ROOT / "rules.yaml", {}))[0]
    hashes = (None, GOOD, OTHER, "not-a-hash")
    cloud = [{"customer_id": "C", "hash_cloud": theirs} for theirs in hashes]
    onprem = [
        {"customer_id": "C", "hash_onprem": ours, "action": action}
        for ours in hashes
        for action in ("UPSERT", "DELETE")
    ]
    pairs = [{"onprem": ours, "cloud": theirs} for ours in onprem for theirs in cloud]
    seen = {
        judge_row(with_rules, row_values(with_rules, pair), NOW).status
        for pair in (*pairs, *({"cloud": theirs} for theirs in cloud))
    }
    assert seen == {
        "MATCH",
        "MISMATCH",
        "MISSING_CLOUD",
        "MISSING_ONPREM",
        "INVALID_HASH",
        "DELETE_EVENT",
    }


def test_a_message_that_lacks_a_declared_field_fails_its_schema(tmp_path: Path) -> None:
    one = table(tmp_path, "{name: a, type: schema}")
    whole: dict[str, object] = {}
    whole |= dict.fromkeys(one.types)
    assert judge_row(one, row_values(one, whole), NOW).status == "VALID"
    assert judge_row(one, row_values(one, {**whole, "new": 1}), NOW).status == "INVALID"
    del whole["email"]
    assert judge_row(one, row_values(one, whole), NOW).status == "INVALID"


@pytest.mark.parametrize(
    ("row", "path", "what"),
    [
        ({"emial": "a"}, "emial", "no column `emial`"),
        ({"items": "5"}, "items", "`5` is no INT"),
        ({"items": 1 << 40}, "items", "is no INT"),
        ({"email": 5}, "email", "`5` is no STRING"),
        ({"paid": "yes"}, "paid", "is no BOOLEAN"),
        ({"day": "01.01.2024"}, "day", "not a date"),
        ({"at": 5}, "at", "is no TIMESTAMP_LTZ"),
        ({"price": "much"}, "price", "is no DECIMAL"),
    ],
)
def test_a_row_that_no_source_could_send_is_refused(
    tmp_path: Path, row: dict[str, object], path: str, what: str
) -> None:
    one = table(tmp_path, "{name: a, when: total > 1}")
    with pytest.raises(FieldRefusal) as caught:
        row_values(one, row)
    assert caught.value.path == path
    assert what in caught.value.what
