from __future__ import annotations

import pytest
from tests.support.clock import ManualClock

from headgate.core.ledger.model import JobSpec, Progress, RunOptions, RunState
from headgate.core.ledger.ops_store import OpsStore
from headgate.errors import ConflictError, OperationError


class FullOptions(RunOptions):
    full: bool


BRONZE = JobSpec("bronze-orders", "bronze", "orders", "batch", "abc", FullOptions(full=True))


def test_a_run_is_submitted_run_and_finished(store: OpsStore, clock: ManualClock) -> None:
    run = store.submit(BRONZE)
    assert (run.number, run.state, run.submitted_at) == (1, RunState.SUBMITTED, clock.now)
    clock.advance(1)
    running = store.move("bronze-orders", 1, RunState.RUNNING, engine="e1")
    assert (running.started_at, running.engine, running.options) == (
        clock.now,
        "e1",
        {"full": True},
    )
    assert FullOptions.of(running) == BRONZE.options
    store.report("bronze-orders", 1, Progress(batches=2, records=10, rate=5.0, words="going"))
    clock.advance(1)
    ended = store.move("bronze-orders", 1, RunState.FINISHED)
    assert ended.ended_at == clock.now
    assert ended.progress.records == 10
    assert store.latest("bronze-orders") == ended


def test_a_job_has_one_run_at_a_time(store: OpsStore) -> None:
    store.submit(BRONZE)
    with pytest.raises(ConflictError, match="already SUBMITTED"):
        store.submit(BRONZE)
    store.move("bronze-orders", 1, RunState.CANCELED)
    assert store.submit(BRONZE).number == 2


@pytest.mark.parametrize("state", [RunState.SUBMITTED, RunState.FINISHED])
def test_illegal_moves_are_refused(store: OpsStore, state: RunState) -> None:
    store.submit(BRONZE)
    with pytest.raises(ConflictError):
        store.move("bronze-orders", 1, state)
    store.move("bronze-orders", 1, RunState.FAILED, "HG-1001", "it broke")
    with pytest.raises(ConflictError):
        store.move("bronze-orders", 1, RunState.RUNNING)


def test_restarts_and_stops_are_counted_and_asked_for(store: OpsStore) -> None:
    store.submit(BRONZE)
    store.count_restart("bronze-orders", 1)
    assert store.count_restart("bronze-orders", 1).restarts == 2
    assert store.request_stop("bronze-orders", 1).stop_requested


def test_the_last_restart_is_kept_with_its_time_and_reason(
    store: OpsStore, clock: ManualClock
) -> None:
    run = store.submit(BRONZE)
    assert (run.restarted_at, run.restart_reason) == (None, None)
    store.count_restart("bronze-orders", 1, "the broker is away")
    clock.advance(5)
    run = store.count_restart("bronze-orders", 1, "again")
    assert (run.restarted_at, run.restart_reason) == (clock.now, "again")
    store.move("bronze-orders", 1, RunState.FAILED)
    next_run = store.submit(BRONZE)
    assert (next_run.restarted_at, next_run.restart_reason) == (None, None)


def test_what_a_run_waits_for_is_forgotten_once_it_goes_on_or_ends(store: OpsStore) -> None:
    store.submit(BRONZE)
    store.claim("bronze-orders", 1, "first")
    store.trouble("bronze-orders", 1, "HG-8001", "the broker is away")
    assert store.run("bronze-orders", 1).error_text == "the broker is away"
    store.trouble("bronze-orders", 1, None, None)
    assert store.run("bronze-orders", 1).error_text is None
    store.trouble("bronze-orders", 1, "HG-8001", "the broker is away")
    ended = store.move("bronze-orders", 1, RunState.CANCELED)
    assert (ended.error_code, ended.error_text) == (None, None)
    store.trouble("bronze-orders", 1, "HG-8001", "too late")
    assert store.run("bronze-orders", 1).error_text is None


def test_runs_are_found_by_time_and_state(store: OpsStore, clock: ManualClock) -> None:
    store.submit(BRONZE)
    store.move("bronze-orders", 1, RunState.FAILED)
    clock.advance(60)
    newer = store.submit(BRONZE)
    assert store.runs(since=clock.now) == (newer,)
    assert [run.number for run in store.runs("bronze-orders")] == [2, 1]
    assert [run.number for run in store.runs(states={RunState.FAILED})] == [1]


def test_another_engine_goes_on_with_a_run_and_counts_the_restart(store: OpsStore) -> None:
    store.submit(BRONZE)
    assert store.claim("bronze-orders", 1, "first").restarts == 0
    taken = store.claim("bronze-orders", 1, "second")
    assert (taken.state, taken.engine, taken.restarts) == (RunState.RUNNING, "second", 1)
    assert taken.restart_reason == "its engine first went away"


def test_a_run_that_has_ended_cannot_be_claimed(store: OpsStore) -> None:
    store.submit(BRONZE)
    store.claim("bronze-orders", 1, "first")
    store.move("bronze-orders", 1, RunState.FINISHED)
    with pytest.raises(ConflictError, match="FINISHED"):
        store.claim("bronze-orders", 1, "second")


def test_an_unknown_run_is_said_to_be_unknown(store: OpsStore) -> None:
    with pytest.raises(OperationError, match="no run 7"):
        store.run("bronze-orders", 7)
    assert store.latest("bronze-orders") is None
