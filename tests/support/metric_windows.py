"""Windows of a quality job: their shape, a closed record, and batches that touch them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from headgate.core.ledger.model import (
    Intent,
    Judged,
    LedgerRow,
    RuleCount,
    TouchedWindow,
)
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.ledger.ranges import TopicRange
from headgate.core.ledger.windows import JudgedRows
from headgate.core.metrics.windows import AggregateVerdict, WindowRecord, WindowShape

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
# Rows are judged an hour after they happened.
NOW = NOON + timedelta(hours=1)
JOB = "quality-orders"
SHAPE = WindowShape(
    job=JOB,
    table_name="orders_onprem",
    topic_name="orders.events",
    env="prod",
    dc="onprem",
    namespace="dq.shop",
    window=timedelta(seconds=10),
    watermark=timedelta(seconds=5),
    metrics=("negative", "no_key"),
)
FEW_ROWS = AggregateVerdict("enough", "row_count", 3.0, True, "WARN", {"region": "north"}, min=10.0)
RECORD = WindowRecord(
    job=JOB,
    table_name="orders_onprem",
    topic_name="orders.events",
    env="prod",
    dc="onprem",
    namespace="dq.shop",
    window_start=NOON,
    window_end=NOON + timedelta(seconds=10),
    sequence=1,
    late=False,
    revision="r1",
    rows=10,
    metrics={"negative": 3, "no_key": 0},
    totals={"ERROR": 3, "WARN": 0, "INFO": 0},
)


def event_time(seconds: float) -> datetime:
    """So many seconds after noon."""
    return NOON + timedelta(seconds=seconds)


def settle_batch(
    store: OpsStore,
    start: int,
    windows: Mapping[int, datetime],
    counts: tuple[RuleCount, ...] = (),
    anew: bool = False,
    rows: int = 0,
    **outcomes: int,
) -> LedgerRow:
    """Settle a batch of one offset, or of as many as the outcomes add up to."""
    became = outcomes or {"accepted": 1}
    read = sum(became.values())
    range_ = TopicRange("orders.events", "t1", {"0": start}, {"0": start + read})
    intent = store.begin(Intent(None, JOB, 1, range_, ("r1",), NOW, start))
    row = LedgerRow(
        None, JOB, 1, range_, ("r1",), NOW, start, read, read, 0, became, {}, committed_at=NOW
    )
    touched = tuple(TouchedWindow(event_time(s), newest) for s, newest in windows.items())
    return store.settle(intent, row, (JudgedRows(Judged(counts, touched, anew, rows)),))
