from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from headgate.core.engine.lag import Lag, LagReport, measured, refuse_too_many_letters
from headgate.core.kafka.topics import TopicState
from headgate.core.ledger.model import LedgerRow
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.ledger.ranges import TableRange, TopicRange
from headgate.errors import DifferenceError
from headgate.pipeline.job_kinds import rows_behind

NOW = datetime(2024, 1, 1, 12, tzinfo=UTC)
TOPIC = TopicState("orders", "id1", begin={0: 0, 1: 5, 2: 0}, end={0: 100, 1: 50, 2: 0})


def settled(source_id: str = "id1", **ends: int) -> TopicRange:
    end = {partition.removeprefix("p"): offset for partition, offset in ends.items()}
    return TopicRange("orders", source_id, {}, end)


def lag(range_: TopicRange | None, **ages: float) -> Lag:
    oldest = {int(p[1:]): NOW - timedelta(seconds=age) for p, age in ages.items()}
    return measured("bronze-orders", TOPIC, range_, oldest, NOW)


def test_lag_is_what_lies_between_the_ledger_and_the_end() -> None:
    found = lag(settled(p0=90, p1=50, p2=0), p0=7.25)
    assert [(p.committed, p.end, p.lag, p.seconds) for p in found.partitions] == [
        (90, 100, 10, 7.2),
        (50, 50, 0, None),
        (0, 0, 0, None),
    ]
    assert (found.records, found.seconds, found.expired) == (10, 7.2, 0)
    assert found.words == "10 records behind, the oldest 7.2 s old"


def test_nothing_settled_means_from_the_first_record() -> None:
    assert [p.committed for p in lag(None).partitions] == [0, 5, 0]
    assert lag(None).records == 145
    assert lag(None).expired == 0


def test_a_topic_made_again_is_all_lag() -> None:
    assert lag(settled("gone", p0=90, p1=50, p2=0)).records == 145


def test_what_expired_is_not_counted_as_lag_but_named() -> None:
    found = lag(settled(p0=100, p1=2, p2=0))
    assert (found.expired, found.records) == (3, 45)
    assert found.words.startswith(
        "3 records expired unread (headgate job accept-gap bronze-orders)"
    )


def test_a_partition_that_was_added_is_read_from_its_beginning() -> None:
    assert [p.lag for p in lag(settled(p1=50, p2=0)).partitions] == [100, 0, 0]


@pytest.mark.parametrize(
    ("seconds", "words"), [(90.0, "90 s"), (600.0, "10 min"), (9_000.0, "2 h"), (9e5, "10 days")]
)
def test_an_age_is_told_in_a_unit_that_fits(seconds: float, words: str) -> None:
    assert lag(settled(p0=99, p1=50, p2=0), p0=seconds).words.endswith(f"the oldest {words} old")


def test_more_dead_letters_than_allowed_is_a_difference() -> None:
    refuse_too_many_letters(LagReport(lag(None), 3, 3, "g"))
    with pytest.raises(DifferenceError, match="4 dead letters, and DLQ_MAX is 3") as error:
        refuse_too_many_letters(LagReport(lag(None), 4, 3, "g"))
    assert error.value.exit_code == 5


class Books(OpsStore):
    """A store of which only the newest batches are asked for."""

    def __init__(self, *rows: LedgerRow) -> None:
        self._rows = rows

    def newest_batches(self, job: str, limit: int) -> tuple[LedgerRow, ...]:
        return tuple(row for row in self._rows if row.job == job)[-limit:]


def bronze(number: int, rows: int) -> LedgerRow:
    range_, at = TopicRange("orders", "id1", {}, {}), NOW + timedelta(seconds=number)
    snapshots, outcomes = {"lake.bronze.orders": number}, {"accepted": rows}
    return LedgerRow(
        number, "bronze-orders", 1, range_, (), at, 0, rows, rows, 0, outcomes, snapshots, at
    )


def silver(snapshot: int, at: float) -> LedgerRow:
    range_ = TableRange("bronze.orders", "u", None, snapshot)
    now = NOW + timedelta(seconds=at)
    return LedgerRow(9, "silver-orders", 1, range_, (), now, 0, 1, 1, 0, {"kept": 1}, {}, now)


def test_silver_is_behind_by_the_rows_after_the_snapshot_it_has_seen() -> None:
    batches = (bronze(1, 100), bronze(2, 20), bronze(3, 3))
    assert rows_behind(Books(*batches), "orders") == 123
    assert rows_behind(Books(*batches, silver(2, at=2.5)), "orders") == 3
    assert rows_behind(Books(*batches, silver(3, at=9)), "orders") == 0
    by_maintenance = silver(77, at=2.5)
    assert rows_behind(Books(*batches, by_maintenance), "orders") == 3
