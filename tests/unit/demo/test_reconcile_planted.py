"""Planted keys against found ones: whatever differs is told, and nothing else."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random

import orjson
import pytest

from headgate.demo.reconcile.comparison import FoundKey, lines_of, repeated_line, text, wrong_keys
from headgate.demo.reconcile.keys import Expected
from headgate.demo.reconcile.planting import ExpectedKey
from headgate.demo.reconcile.recount import TopicRecord, recounted
from headgate.quality.spec.reconcile_checks import Limits
from headgate.reconcile.state import Side

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
LIMITS = Limits(timedelta(minutes=10), timedelta(minutes=5), timedelta(hours=1))
HASH, OTHER = "a" * 64, "b" * 64


def expected(pk: str, **fields: object) -> ExpectedKey:
    return ExpectedKey(pk, "role", Expected(**fields))  # type: ignore[arg-type]


def test_keys_as_planted_give_nothing_to_tell() -> None:
    planted = [
        expected("a", status="MISMATCH", kind="case", column="col1"),
        expected("b", status="LATE_MATCH", path=("MISSING_CLOUD", "LATE_MATCH")),
        expected("c", status=None, letter="not_json"),
        expected("d", status="ZOMBIE", stale=None),
    ]
    found = [
        FoundKey("a", "MISMATCH", kinds=frozenset({"case"}), columns=frozenset({"col1"})),
        FoundKey("b", "LATE_MATCH", history=("PENDING", "MISSING_CLOUD", "LATE_MATCH")),
        FoundKey("d", "ZOMBIE", stale=True),
    ]
    assert wrong_keys(planted, {key.pk: key for key in found}) == ()


@pytest.mark.parametrize(
    ("found", "what"),
    [
        (FoundKey("a", "MATCH", history=("MISMATCH", "MATCH")), "status"),
        (FoundKey("a", "MISMATCH", kinds=frozenset({"real"}), history=("MISMATCH",)), "kind"),
        (FoundKey("a", "MISMATCH", stale=True, history=("MISMATCH",)), "stale"),
        (FoundKey("a", "MISMATCH", conflict=True, history=("MISMATCH",)), "conflict"),
        (FoundKey("a", "MISMATCH", history=("PENDING",)), "history"),
    ],
)
def test_each_thing_that_differs_is_told(found: FoundKey, what: str) -> None:
    planted = [expected("a", status="MISMATCH", path=("MISMATCH",))]
    (wrong,) = wrong_keys(planted, {"a": found})
    assert wrong.what == what
    assert what in wrong.sentence()


def test_a_missing_key_and_a_strange_one_are_told() -> None:
    wrong = wrong_keys([expected("a", status="MATCH")], {"z": FoundKey("z", "MATCH")})
    assert [(one.pk, one.role) for one in wrong] == [("a", "role"), ("z", "not planted")]


def test_a_count_that_nobody_planted_does_not_hold() -> None:
    lines = lines_of(
        "keys", {"MATCH": 2}, {"view": {"MATCH": 2, "ZOMBIE": 1}, "gauge": {"MATCH": 2}}
    )
    assert [(line.name, line.holds) for line in lines] == [("MATCH", True), ("ZOMBIE", False)]
    assert "✗ ZOMBIE" in text(lines)
    assert "found 1 in view" in lines[1].sentence()


def record(side: Side, offset: int, minute: int, value: object, key: str = "a") -> TopicRecord:
    raw = value if isinstance(value, bytes) or value is None else orjson.dumps(value)
    return TopicRecord(side, 0, offset, NOON + timedelta(minutes=minute), key.encode(), raw)


def said(moment: str, hashed: str, **more: object) -> dict[str, object]:
    pk = [{"type": "PK", "value": "a"}]
    return {"hash_onprem": hashed, "partitionColumns": pk, "event_ts": moment, **more}


def read(moment: str, hashed: str | None) -> dict[str, object]:
    return {"pk": "a", "hash_cloud": hashed, "hash_version": 2, "cloud_ts": moment}


def test_records_are_judged_without_spark_in_any_order() -> None:
    records = [
        record("onprem", 0, 0, said("2026-03-01T11:00:00Z", OTHER)),
        record("onprem", 1, 1, said("2026-03-01T11:30:00Z", HASH)),
        record("onprem", 2, 2, said("2026-03-01T11:30:00Z", HASH)),
        record("onprem", 3, 3, said("2026-03-01T11:45:00Z", HASH, action="MERGE")),
        record("onprem", 4, 3, b"{"),
        record("cloud", 0, 1, read("2026-03-01T11:00:00Z", None)),
        record("cloud", 1, 4, read("2026-03-01T11:31:00Z", HASH)),
    ]
    statuses: set[str] = set()
    for seed in range(20):
        Random(seed).shuffle(records)
        found = recounted(records, LIMITS.horizon)
        statuses.add(found.verdicts(NOON, LIMITS)["a"].status)
        assert found.duplicates.get("onprem") == 1
    assert statuses == {"MATCH"}


def test_a_tombstone_is_a_delete_of_the_key_in_the_message_key() -> None:
    records = [
        record("onprem", 0, 0, said("2026-03-01T11:00:00Z", HASH)),
        record("onprem", 1, 1, None),
        record("cloud", 0, 2, None),
    ]
    recount = recounted(records, LIMITS.horizon)
    assert recount.verdicts(NOON, LIMITS)["a"].status == "DELETE_EVENT"


def test_repetitions_of_an_older_version_or_another_window_may_be_counted_or_not() -> None:
    """How batches are cut decides it, and load decides how they are."""
    old, new = "2026-03-01T11:00:00Z", "2026-03-01T11:30:00Z"
    recount = recounted(
        [
            record("cloud", 0, 0, read(old, OTHER)),
            record("cloud", 1, 1, read(new, HASH)),
            record("cloud", 2, 2, read(old, OTHER)),
            record("cloud", 3, 3, read(new, HASH)),
            record("onprem", 0, 58, said(new, HASH)),
            record("onprem", 1, 59, said(new, HASH)),
            record("onprem", 2, 61, said(new, HASH)),
        ],
        LIMITS.horizon,
    )

    lines = {count: repeated_line(2, recount, count) for count in range(1, 6)}

    assert [count for count, line in lines.items() if line.holds] == [2, 3, 4]
    assert lines[5].sentence() == "repeated records: planted 2–4, found 5 in counter"
