"""Offset ranges, intents and ledger rows of an orders pipeline."""

from __future__ import annotations

from collections.abc import Mapping

from tests.support.clock import START

from headgate.core.ledger.model import Intent, LedgerRow
from headgate.core.ledger.ranges import Range, TableRange, TopicRange


def topic_range(
    start: Mapping[str, int], end: Mapping[str, int], topic_id: str = "t1"
) -> TopicRange:
    """A range of offsets of the topic."""
    return TopicRange("orders", topic_id, start, end)


def table_range(start: int | None, end: int) -> TableRange:
    """A range of snapshots of bronze."""
    return TableRange("bronze.orders", "u1", start, end)


def intent(range_: Range, revisions: tuple[str, ...] = ("r1",), run: int = 1) -> Intent:
    """The intent of a batch over this range."""
    job = "silver-orders" if isinstance(range_, TableRange) else "bronze-orders"
    return Intent(None, job, run, range_, revisions, START, 0)


def ledger_row(of: Intent, gaps: int = 0, **outcomes: int) -> LedgerRow:
    """The ledger row that settles an intent with these outcomes."""
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
        committed_at=START,
    )
