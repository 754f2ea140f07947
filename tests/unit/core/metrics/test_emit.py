from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from tests.support.clock import ManualClock
from tests.support.metric_windows import JOB, NOW, SHAPE, event_time, settle_batch

from headgate.core.ledger.ops_store import OpsStore
from headgate.core.metrics.windows import AT_ONCE, Emitter, WindowSums, restored


class Partials:
    """What the partials of each window add up to, and how often that was asked."""

    def __init__(self) -> None:
        self.sums: dict[datetime, WindowSums] = {}
        self.asked = 0

    def add(self, start: int, n: int, rows: int = 0) -> None:
        self.sums[event_time(start)] = WindowSums(
            rows or n, {"negative": n}, {"ERROR": n}, (), "r1"
        )

    def __call__(self, starts: Sequence[datetime]) -> Mapping[datetime, WindowSums]:
        self.asked += 1
        return {start: self.sums[start] for start in starts if start in self.sums}


def said(store: OpsStore) -> list[tuple[datetime, int, bool, int]]:
    """Start, sequence, late and errors of every window that has a record."""
    records = [restored(w.record) for w in store.windows(JOB) if w.record]
    return [(r.window_start, r.sequence, r.late, r.totals["ERROR"]) for r in records]


def test_a_window_closes_when_event_time_has_passed_it_by_the_watermark(
    store: OpsStore, clock: ManualClock
) -> None:
    partials = Partials()
    emitter = Emitter(store, SHAPE, partials, clock)
    partials.add(0, 2)
    settle_batch(store, 0, {0: event_time(9)})
    assert (emitter.close_due(), partials.asked) == (0, 0)
    settle_batch(store, 1, {10: event_time(14)})
    assert (emitter.close_due(), partials.asked) == (0, 0)
    settle_batch(store, 2, {10: event_time(15)})
    assert emitter.close_due() == 1
    assert said(store) == [(event_time(0), 1, False, 2)]


def test_a_row_from_the_future_closes_no_window_before_its_time(
    store: OpsStore, clock: ManualClock
) -> None:
    partials = Partials()
    emitter = Emitter(store, SHAPE, partials, clock)
    for start in (0, 10, 1_000_000):
        partials.add(start, 1)
    settle_batch(store, 0, {0: event_time(1), 1_000_000: event_time(1_000_000)})
    settle_batch(store, 1, {10: event_time(11)})
    assert emitter.close_due() == 0
    settle_batch(store, 2, {10: event_time(15)})
    assert emitter.close_due() == 1
    assert said(store) == [(event_time(0), 1, False, 1)]


def test_a_window_closes_when_no_record_has_come_for_thirty_seconds(
    store: OpsStore, clock: ManualClock
) -> None:
    partials = Partials()
    emitter = Emitter(store, SHAPE, partials, clock)
    partials.add(0, 1)
    settle_batch(store, 0, {0: event_time(1)})
    clock.advance(29)
    assert emitter.close_due() == 0
    clock.advance(1)
    assert emitter.close_due() == 1
    assert emitter.close_due() == 0


def test_a_late_row_gives_the_window_a_flagged_record_with_the_next_number(
    store: OpsStore, clock: ManualClock
) -> None:
    partials = Partials()
    emitter = Emitter(store, SHAPE, partials, clock)
    partials.add(0, 1)
    settle_batch(store, 0, {0: event_time(1), 100: event_time(100)})
    emitter.close_due()
    partials.add(0, 4)
    settle_batch(store, 1, {0: event_time(2)})
    assert emitter.close_due() == 1
    assert said(store) == [(event_time(0), 2, True, 4)]


def test_a_replay_that_adds_nothing_says_nothing(store: OpsStore, clock: ManualClock) -> None:
    partials = Partials()
    emitter = Emitter(store, SHAPE, partials, clock)
    partials.add(0, 1)
    settle_batch(store, 0, {0: event_time(1), 100: event_time(100)})
    emitter.close_due()
    settle_batch(store, 1, {0: event_time(1)})
    assert emitter.close_due() == 0
    assert said(store) == [(event_time(0), 1, False, 1)]


def test_the_end_of_a_bounded_run_closes_everything(store: OpsStore, clock: ManualClock) -> None:
    partials = Partials()
    starts = range(0, 10 * (AT_ONCE + 1), 10)
    for start in starts:
        partials.add(start, 1)
    settle_batch(store, 0, {start: event_time(start) for start in starts})
    emitter = Emitter(store, SHAPE, partials, clock)
    assert emitter.close_due(everything=True) == AT_ONCE + 1
    assert partials.asked == 2, "sums are asked for in bounded pieces"


def test_a_window_whose_rows_are_gone_is_said_to_be_empty(
    store: OpsStore, clock: ManualClock
) -> None:
    partials = Partials()
    emitter = Emitter(store, SHAPE, partials, clock)
    partials.add(0, 3)
    settle_batch(store, 0, {0: event_time(1)})
    emitter.close_due(everything=True)
    partials.sums.clear()
    partials.add(50, 1)
    settle_batch(store, 1, {50: event_time(50)}, anew=True)
    assert emitter.close_due(everything=True) == 2
    assert said(store) == [(event_time(0), 2, True, 0), (event_time(50), 1, False, 1)]


def test_a_window_that_a_broken_off_batch_announced_alone_is_never_said(
    store: OpsStore, clock: ManualClock
) -> None:
    settle_batch(store, 0, {0: event_time(1)})
    assert Emitter(store, SHAPE, Partials(), clock).close_due(everything=True) == 0
    assert store.pending_windows(JOB) == ()


def test_a_restart_goes_on_where_it_was(store: OpsStore, clock: ManualClock) -> None:
    partials = Partials()
    partials.add(0, 1)
    settle_batch(store, 0, {0: event_time(1), 100: event_time(100)})
    assert Emitter(store, SHAPE, partials, clock).close_due() == 1
    assert Emitter(store, SHAPE, partials, clock).close_due() == 0


def test_idle_is_measured_from_the_last_commit(store: OpsStore, clock: ManualClock) -> None:
    assert store.last_record_at(JOB) is None
    settle_batch(store, 0, {0: event_time(1)})
    assert store.last_record_at(JOB) == NOW
    assert clock() - NOW < timedelta(seconds=1)
