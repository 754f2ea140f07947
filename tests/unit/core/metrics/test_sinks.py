from __future__ import annotations

import threading

import pytest
from tests.support.clock import ManualClock
from tests.support.metric_sinks import RecordingSink
from tests.support.metric_windows import JOB, SHAPE, event_time, settle_batch

from headgate.core.ledger.ops_store import OpsStore
from headgate.core.metrics.delivery import AT_ONCE, Deliverer
from headgate.core.metrics.windows import Emitter, WindowSums


def closed(store: OpsStore, clock: ManualClock, offset: int, *starts: int, rows: int = 1) -> None:
    settle_batch(store, offset, {start: event_time(start) for start in starts})
    sums = WindowSums(rows, {}, {}, (), "r1")
    Emitter(store, SHAPE, lambda s: dict.fromkeys(s, sums), clock).close_due(everything=True)


def test_every_sink_gets_every_window_once(store: OpsStore, clock: ManualClock) -> None:
    sinks = [RecordingSink("a"), RecordingSink("b")]
    deliverer = Deliverer(store, sinks)
    closed(store, clock, 0, 0, 10)
    assert [deliverer.deliver(), deliverer.deliver()] == [4, 0]
    assert (
        sinks[0].ids == sinks[1].ids == [f"{JOB}/2026-01-01T12:00:{s}.000Z/1" for s in ("00", "10")]
    )


def test_more_than_fits_at_once_goes_in_pieces(store: OpsStore, clock: ManualClock) -> None:
    sink = RecordingSink()
    deliverer = Deliverer(store, [sink])
    closed(store, clock, 0, *range(0, 10 * (AT_ONCE + 5), 10))
    assert deliverer.deliver() == len(set(sink.ids)) == AT_ONCE + 5
    assert sink.tries == 2


def test_an_outage_loses_nothing_and_holds_no_other_sink_up(
    store: OpsStore, clock: ManualClock
) -> None:
    away, there, now = RecordingSink("away"), RecordingSink("there"), [0.0]
    deliverer = Deliverer(store, [away, there], monotonic=lambda: now[0])
    away.fails = True
    closed(store, clock, 0, 0)
    assert deliverer.deliver() == 1
    closed(store, clock, 1, 10)
    assert (deliverer.deliver(), away.tries) == (1, 1), "it is not tried again at once"
    away.fails, now[0] = False, 1.0
    assert deliverer.deliver() == 2
    assert away.ids == there.ids


def test_the_wait_grows_to_a_minute_and_no_more(store: OpsStore, clock: ManualClock) -> None:
    sink, now, tried = RecordingSink(), [0.0], list[float]()
    deliverer = Deliverer(store, [sink], monotonic=lambda: now[0])
    sink.fails = True
    closed(store, clock, 0, 0)
    for second in range(200):
        now[0], before = float(second), sink.tries
        deliverer.deliver()
        tried += [now[0]] * (sink.tries - before)
    assert tried == [0, 1, 3, 7, 15, 31, 63, 123, 183]
    assert store.sinks()[0].failures == 9


@pytest.mark.parametrize(("at_most_once", "sent"), [(False, 2), (True, 1)])
def test_a_kill_behind_a_send(
    store: OpsStore, clock: ManualClock, at_most_once: bool, sent: int
) -> None:
    sink = RecordingSink(at_most_once=at_most_once)
    closed_before = Deliverer(store, [sink])
    closed(store, clock, 0, 0)
    sink.dies_after = True
    with pytest.raises(KeyboardInterrupt):
        closed_before.deliver()
    sink.dies_after = False
    Deliverer(store, [sink]).deliver()
    assert (len(sink.ids), len(set(sink.ids))) == (sent, 1), "what comes twice has the same id"


def test_a_late_window_comes_with_what_was_sent_of_it_before(
    store: OpsStore, clock: ManualClock
) -> None:
    sink = RecordingSink()
    deliverer = Deliverer(store, [sink])
    closed(store, clock, 0, 0, rows=4)
    deliverer.deliver()
    closed(store, clock, 1, 0, rows=9)
    closed(store, clock, 2, 0, rows=11)
    assert deliverer.deliver() == 1
    assert (sink.before, sink.ids[-1][-2:]) == ([0, 4], "/3")


def test_the_thread_sends_what_is_left_when_it_is_stopped(
    store: OpsStore, clock: ManualClock
) -> None:
    sink, stop = RecordingSink(), threading.Event()
    deliverer = Deliverer(store, [sink])
    closed(store, clock, 0, 0)
    stop.set()
    deliverer.run(stop)
    assert len(sink.ids) == 1


def test_what_keeps_a_sink_back_is_told(store: OpsStore, clock: ManualClock) -> None:
    away, there = RecordingSink("away"), RecordingSink("there")
    deliverer = Deliverer(store, [away, there])
    away.fails = True
    closed(store, clock, 0, 0)
    sent, errors = deliverer.deliver_now()
    assert (sent, list(errors)) == (1, ["away"])
    state = store.sinks()[0]
    assert (state.failures, state.trouble, store.waiting_windows(state)) == (
        1,
        "away | pulled out",
        1,
    )
