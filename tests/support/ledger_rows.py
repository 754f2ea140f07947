"""What the tests of the store share: a clock to turn, intents and ledger rows in few words."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from headgate.store.model import Intent, LedgerRow, Range

TIME = datetime(2024, 1, 1, tzinfo=UTC)


class Clock:
    """A clock that a test turns by hand."""

    def __init__(self) -> None:
        self.now = TIME

    def __call__(self) -> datetime:
        return self.now

    def pass_(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


def topic(start: Mapping[str, int], end: Mapping[str, int], topic_id: str = "t1") -> Range:
    return Range("kafka:orders", topic_id, start, end)


def table(start: int | None, end: int) -> Range:
    return Range(
        "table:bronze.orders", "u1", {"snapshot": start} if start else {}, {"snapshot": end}
    )


def intent(range_: Range, revisions: tuple[str, ...] = ("r1",), run: int = 1) -> Intent:
    job = "silver-orders" if range_.is_table else "bronze-orders"
    return Intent(None, job, run, range_, revisions, TIME, 0)


def outcome(of: Intent, gaps: int = 0, **outcomes: int) -> LedgerRow:
    read = sum(outcomes.values())
    return LedgerRow(
        id=None,
        job=of.job,
        run=of.run,
        range=of.range,
        revisions=of.revisions,
        batch_time=of.batch_time,
        batch_id=of.batch_id,
        read=read,
        span=read + gaps,
        gaps=gaps,
        outcomes=outcomes,
        snapshots={"bronze.orders": 7_000_000_000_000_000_001},
        committed_at=TIME,
    )
