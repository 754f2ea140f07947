from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from tests.support.clock import ManualClock
from tests.support.ledger_rows import intent, ledger_row, topic_range

from headgate.core.ledger import windows
from headgate.core.ledger.model import (
    Closing,
    Judged,
    LedgerRow,
    RuleCount,
    TouchedWindow,
    Window,
)
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.ledger.windows import JudgedRows

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
JOB = "bronze-orders"


def at(seconds: int) -> datetime:
    return NOON + timedelta(seconds=seconds)


def judged(*starts: int, n: int = 1, anew: bool = False) -> Judged:
    counts = (RuleCount("negative", "negative", "ERROR", n, n + 1),)
    return Judged(counts, tuple(TouchedWindow(at(s), at(s + 7)) for s in starts), anew, rows=10)


def batch(store: OpsStore, start: int, found: Judged) -> LedgerRow:
    begun = store.begin(intent(topic_range({"0": start}, {"0": start + 1})))
    return store.settle(begun, ledger_row(begun, accepted=1), (JudgedRows(found),))


def close(store: OpsStore, *found: Window, words: str = "a") -> int:
    return store.close_windows([Closing(w, words, {"is": words}) for w in found])


def test_a_settled_batch_leaves_its_counts_and_its_windows(store: OpsStore) -> None:
    batch(store, 0, judged(0, 10, n=2))
    batch(store, 1, judged(10, n=3))
    assert store.rule_counts(JOB) == (RuleCount("negative", "negative", "ERROR", 5, 7),)
    assert [w.window_start for w in store.pending_windows(JOB)] == [at(0), at(10)]
    assert store.greatest_event_time(JOB, at(60)) == at(17)


def test_a_row_from_the_future_says_nothing_of_how_far_event_time_has_come(
    store: OpsStore,
) -> None:
    ahead = TouchedWindow(at(1_000_000), at(1_000_003))
    batch(store, 0, Judged((), (TouchedWindow(at(0), at(7)), ahead)))
    assert store.greatest_event_time(JOB, at(20)) == at(7)
    batch(store, 1, judged(30))
    assert store.greatest_event_time(JOB, at(60)) == at(37)
    assert store.greatest_event_time(JOB, at(2_000_000)) == at(1_000_003), "until it is there"


def test_the_last_closed_window_is_found_among_those_that_begin_by_a_time(store: OpsStore) -> None:
    batch(store, 0, judged(0, 10, 1_000))
    assert store.jobs_with_pending_windows() == (JOB,)
    assert store.last_closed_window(JOB, at(5_000)) is None
    close(store, *store.pending_windows(JOB))
    batch(store, 1, judged(20))
    found = [store.last_closed_window(JOB, at(s)) for s in (9, 500, 1_000)]
    assert found == [at(0), at(10), at(1_000)]
    close(store, *store.pending_windows(JOB))
    assert store.jobs_with_pending_windows() == ()


def test_a_batch_that_is_settled_twice_counts_once(store: OpsStore) -> None:
    begun = store.begin(intent(topic_range({}, {"0": 1})))
    for _ in range(2):
        store.settle(begun, ledger_row(begun, accepted=1), (JudgedRows(judged(0)),))
    assert store.rule_counts(JOB) == (RuleCount("negative", "negative", "ERROR", 1, 2),)


def test_the_newest_counts_stand_by_their_batches(store: OpsStore) -> None:
    rows = [batch(store, start, judged(0, n=start)) for start in range(3)]
    newest = store.newest_rule_counts(JOB, 2)
    assert {batch: counts[0].n for batch, counts in newest.items()} == {
        rows[1].id: 1,
        rows[2].id: 2,
    }
    first = rows[0].id
    assert first is not None
    later = [(c.rule, c.n) for _, c in store.rule_counts_between(first, 99)]
    assert later == [("", 20), ("negative", 3)], "without a rule: all rows"
    assert [c.n for _, c in store.rule_counts_between(first, first + 1)] == [10, 1]
    assert [row.id for row in store.ledger_after(first, 1)] == [rows[1].id]


def test_a_closed_window_is_pending_again_only_when_a_batch_touches_it(store: OpsStore) -> None:
    batch(store, 0, judged(0))
    assert close(store, *store.pending_windows(JOB)) == 1
    assert store.pending_windows(JOB) == ()
    batch(store, 1, judged(0))
    (again,) = store.pending_windows(JOB)
    assert (again.sequence, again.digest, again.record) == (1, "a", {"is": "a"})


def test_what_is_touched_while_it_is_looked_at_stays_pending(store: OpsStore) -> None:
    batch(store, 0, judged(0))
    looked_at = store.pending_windows(JOB)
    batch(store, 1, judged(0))
    close(store, *looked_at)
    (again,) = store.pending_windows(JOB)
    assert (again.sequence, again.is_pending) == (1, True)


def test_two_that_close_the_same_window_give_it_one_number(store: OpsStore) -> None:
    batch(store, 0, judged(0))
    looked_at = store.pending_windows(JOB)
    assert [close(store, *looked_at), close(store, *looked_at, words="b")] == [1, 0]
    assert [(w.sequence, w.digest) for w in store.windows(JOB)] == [(1, "a")]


def test_a_window_with_nothing_new_to_say_is_seen_and_not_closed(store: OpsStore) -> None:
    batch(store, 0, judged(0))
    (window,) = store.pending_windows(JOB)
    assert store.close_windows([Closing(window, "a", None)]) == 0
    assert [(w.sequence, w.is_pending) for w in store.windows(JOB)] == [(0, False)]


def test_a_batch_that_replaces_all_looks_at_every_window_again(store: OpsStore) -> None:
    batch(store, 0, judged(0, 10))
    close(store, *store.pending_windows(JOB))
    batch(store, 1, judged(20, anew=True))
    assert [w.window_start for w in store.pending_windows(JOB)] == [at(0), at(10), at(20)]


def test_no_window_is_idle_while_a_batch_is_under_way(store: OpsStore) -> None:
    row = batch(store, 0, judged(0))
    assert store.last_record_at(JOB) == row.committed_at
    store.begin(intent(topic_range({"0": 1}, {"0": 2})))
    assert store.last_record_at(JOB) is None


def test_a_sink_gets_each_closing_once_and_in_order(store: OpsStore) -> None:
    store.register_sink("kafka")
    batch(store, 0, judged(0, 10))
    close(store, *store.pending_windows(JOB))
    first = store.unsent_windows(store.register_sink("kafka"), 1)
    assert [(u.window.window_start, u.before) for u in first] == [(at(0), {})]
    store.windows_sent("kafka", [(u, {"m": 4}) for u in first])
    batch(store, 1, judged(0))
    close(store, *store.pending_windows(JOB), words="b")
    rest = store.unsent_windows(store.register_sink("kafka"), 9)
    assert [(u.window.window_start, u.before) for u in rest] == [(at(10), {}), (at(0), {"m": 4})]
    store.windows_sent("kafka", [(u, {"m": 5}) for u in rest])
    state = store.register_sink("kafka")
    assert (store.waiting_windows(state), state.failures) == (0, 0)
    assert store.sent_windows(JOB, [at(0)]) == {at(0): {"kafka": 2}}


def test_a_new_sink_begins_with_what_closes_from_then_on(store: OpsStore) -> None:
    batch(store, 0, judged(0))
    close(store, *store.pending_windows(JOB))
    state = store.register_sink("http")
    assert store.unsent_windows(state, 9) == ()


def test_a_sinks_trouble_is_kept_until_it_sends_again(store: OpsStore, clock: ManualClock) -> None:
    store.register_sink("http")
    batch(store, 0, judged(0))
    close(store, *store.pending_windows(JOB))
    store.sink_failed("http", "away")
    store.sink_failed("http", "still away")
    (state,) = store.sinks()
    assert (state.failures, state.trouble) == (2, "still away")
    store.windows_sent("http", [(u, {}) for u in store.unsent_windows(state, 9)])
    (state,) = store.sinks()
    assert (state.failures, state.trouble, state.sent_at) == (0, None, clock())


def test_old_records_go_once_every_sink_has_sent_them(
    store: OpsStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows, "KEPT_RECORDS", 2)
    store.register_sink("kafka")
    batch(store, 0, judged(*range(0, 50, 10)))
    close(store, *store.pending_windows(JOB))
    store.forget_records(JOB)
    assert all(w.record for w in store.windows(JOB)), "none is sent yet"
    sent = store.unsent_windows(store.register_sink("kafka"), 4)
    store.windows_sent("kafka", [(u, {}) for u in sent])
    store.forget_records(JOB)
    assert [w.record is None for w in store.windows(JOB)] == [True, True, True, False, False]
    assert {w.sequence for w in store.windows(JOB)} == {1}


def test_a_sink_that_is_away_for_ever_does_not_fill_the_disk(
    store: OpsStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows, "KEPT_RECORDS", 2)
    monkeypatch.setattr(windows, "MOST_RECORDS", 4)
    store.register_sink("http")
    batch(store, 0, judged(*range(0, 50, 10)))
    close(store, *store.pending_windows(JOB))
    store.forget_records(JOB)
    assert [w.record is None for w in store.windows(JOB)] == [True, False, False, False, False]
