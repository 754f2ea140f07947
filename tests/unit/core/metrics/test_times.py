"""Far event times: whatever year a record says, nothing raises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from tests.support.clock import ManualClock
from tests.support.metric_windows import JOB, NOON, NOW, SHAPE

from headgate.core.ledger.model import Intent, Judged, LedgerRow, TouchedWindow
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.ledger.ranges import TopicRange
from headgate.core.ledger.windows import JudgedRows
from headgate.core.metrics.windows import (
    END,
    EPOCH,
    FIRST,
    LAST,
    Emitter,
    WindowSums,
    closes_before,
    earlier,
    later,
    messages,
    moment,
    restored,
)

YEAR = 31_556_952_000_000


def test_a_moment_that_python_does_not_know_is_the_first_or_the_last() -> None:
    assert moment(10_375 * YEAR) == moment(2**63 - 1) == LAST < END
    assert moment(-3_000 * YEAR) == moment(-(2**63)) == FIRST
    assert moment(1) == EPOCH + timedelta(microseconds=1)
    assert moment(253_402_300_799_999_999) == LAST, "the last one is a whole second"


def test_sums_of_times_stay_within_all_time() -> None:
    day = timedelta(days=1)
    assert (earlier(FIRST, day), later(LAST, day)) == (FIRST, END)
    assert earlier(NOON, timedelta.max) == FIRST
    assert later(earlier(NOON, day), day) == NOON


@pytest.mark.parametrize("greatest", [FIRST, LAST, END])
def test_what_is_due_can_be_said_at_both_ends_of_time(greatest: datetime) -> None:
    shape = replace(SHAPE, watermark=timedelta(days=999_999_999))
    for found in (SHAPE, shape):
        assert closes_before(found, greatest, None, NOON) is not None


def test_windows_at_both_ends_of_time_close_and_are_said(
    store: OpsStore, clock: ManualClock
) -> None:
    sentinel = datetime(9999, 12, 31, 23, 59, 50, tzinfo=UTC)
    starts = (FIRST, sentinel, LAST)
    touched = tuple(TouchedWindow(start, NOON) for start in starts)
    range_ = TopicRange("orders.events", "t1", {"0": 0}, {"0": 1})
    intent = store.begin(Intent(None, JOB, 1, range_, ("r1",), NOW, 0))
    row = LedgerRow(None, JOB, 1, range_, ("r1",), NOW, 0, 1, 1, 0, {"accepted": 1}, {}, NOW)
    store.settle(intent, row, (JudgedRows(Judged((), touched)),))

    def sums(asked: Sequence[datetime]) -> Mapping[datetime, WindowSums]:
        return {start: WindowSums(1, {}, {}, (), "r1") for start in asked}

    emitter = Emitter(store, SHAPE, sums, clock)
    assert emitter.close_due() == 1, "only the year 1 is over"
    clock.advance(30)
    assert emitter.close_due() == 2
    said = [restored(w.record) for w in store.windows(JOB) if w.record]
    assert [record.window_start for record in said] == list(starts)
    assert [messages(r)[0]["window_end"] for r in said] == [
        "0001-01-01T00:00:10.000Z",
        "9999-12-31T23:59:59.999Z",
        "9999-12-31T23:59:59.999Z",
    ]
