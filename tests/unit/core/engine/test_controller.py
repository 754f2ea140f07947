"""What becomes of runs whose attempts fail: by the driver, by what they need, or by themselves."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from py4j.protocol import Py4JNetworkError
from tests.support.clock import ManualClock

from headgate.config.settings import Settings
from headgate.core.engine import controller as controller_module
from headgate.core.engine.controller import LOSSES, TRIES, Controller, Driver
from headgate.core.engine.lease import EngineLease
from headgate.core.engine.run import Job, RunContext
from headgate.core.engine.stream import explain
from headgate.core.ledger.model import JobSpec, Progress, Run, RunState
from headgate.core.ledger.ops_store import OpsStore
from headgate.errors import DriverLostError, UnavailableError, UsageError
from headgate.local.process import wait_until

JOB = "bronze-taxi"


class Jvm:
    """A driver that the test decides about."""

    def __init__(self) -> None:
        self.alive = True
        self.driver = Driver(None, lambda: self.alive, "2g")

    def die(self) -> None:
        self.alive = False
        raise Py4JNetworkError("Answer from Java side is empty")


class Rig:
    """Controllers of one engine after another over one store."""

    def __init__(self, store: OpsStore, settings: Settings) -> None:
        self.store, self.settings = store, settings
        self.jvm = Jvm()
        self.set_pool: Callable[[str, str], None] = lambda _name, _pool: None

    def submit(self, mode: str) -> Run:
        return self.store.submit(JobSpec(JOB, "bronze", "taxi", mode, "r"))

    def run(self) -> Run:
        latest = self.store.latest(JOB)
        assert latest is not None
        return latest

    def engine(self, job: Job) -> None:
        """One engine from its start until its run has ended or its driver is lost."""
        self.jvm = Jvm()
        context = SimpleNamespace(setLocalProperty=lambda *of: self.set_pool(*of))
        session = cast("Any", SimpleNamespace(sparkContext=context))
        lease = EngineLease.take(self.store)
        assert lease is not None
        with lease:
            controller = Controller(
                session, self.jvm.driver, self.store, lease, {"bronze": job}, lambda: self.settings
            )
            controller.look()
            assert wait_until(lambda: not controller.busy, 20)
            controller.check()
            controller.look()


@pytest.fixture
def rig(store: OpsStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rig:
    monkeypatch.setattr(controller_module, "LONGEST_WAIT", 0.01)
    monkeypatch.setattr(controller_module, "LONGEST_AWAY_PAUSE", 0.01)
    (tmp_path / "logs").mkdir()
    return Rig(store, Settings(root=tmp_path, home=tmp_path))


@pytest.mark.parametrize("mode", ["batch", "streaming"])
def test_a_run_whose_driver_is_lost_stays_wanted_and_goes_on(rig: Rig, mode: str) -> None:
    rig.submit(mode)
    with pytest.raises(DriverLostError):
        rig.engine(lambda context: rig.jvm.die())
    assert (rig.run().state, rig.run().restarts) == (RunState.RUNNING, 0)
    assert "answers no more" in (rig.run().error_text or "")
    rig.engine(lambda context: None)
    assert (rig.run().state, rig.run().restarts) == (RunState.FINISHED, 1)
    assert "answers no more" in (rig.run().restart_reason or "")


def test_a_driver_that_dies_before_the_job_begins_takes_no_try(rig: Rig) -> None:
    rig.submit("batch")
    rig.set_pool = lambda _name, _pool: rig.jvm.die()
    with pytest.raises(DriverLostError):
        rig.engine(lambda context: None)
    assert rig.run().state is RunState.RUNNING


def test_a_batch_run_that_loses_every_driver_fails_and_says_why(rig: Rig) -> None:
    rig.submit("batch")
    for _ in range(LOSSES):
        assert rig.run().state in (RunState.SUBMITTED, RunState.RUNNING)
        with pytest.raises(DriverLostError):
            rig.engine(lambda context: rig.jvm.die())
    assert rig.run().state is RunState.FAILED
    assert f"{LOSSES} times while this run was under way" in (rig.run().error_text or "")
    assert rig.run().error_code == DriverLostError.code


def test_losses_with_a_settled_batch_in_between_do_not_add_up(rig: Rig) -> None:
    run = rig.submit("batch")
    for batches in range(2 * LOSSES):
        rig.store.report(run.job, run.number, Progress(batches=batches))
        with pytest.raises(DriverLostError):
            rig.engine(lambda context: rig.jvm.die())
    assert rig.run().state is RunState.RUNNING


def test_a_stream_is_never_given_up_for_a_lost_driver(rig: Rig) -> None:
    rig.submit("streaming")
    for _ in range(2 * LOSSES):
        with pytest.raises(DriverLostError):
            rig.engine(lambda context: rig.jvm.die())
    assert rig.run().state is RunState.RUNNING


@pytest.mark.parametrize("mode", ["batch", "streaming"])
def test_what_is_away_takes_no_try(rig: Rig, mode: str) -> None:
    attempts: list[int] = []

    def job(context: RunContext) -> None:
        assert context.failures == 0
        attempts.append(1)
        if len(attempts) <= 3 * TRIES:
            raise UnavailableError("the broker is away")

    rig.submit(mode)
    rig.engine(job)
    assert rig.run().state is RunState.FINISHED


def test_a_batch_run_waits_for_what_is_away_only_so_long(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controller_module, "AWAY_SECONDS", 0.1)

    def job(context: RunContext) -> None:
        raise UnavailableError("the broker is away")

    rig.submit("batch")
    rig.engine(job)
    assert (rig.run().state, rig.run().error_code) == (RunState.FAILED, "HG-8001")


@pytest.mark.parametrize(
    ("error", "attempts"), [(RuntimeError("Spark says no"), TRIES), (UsageError("no"), 1)]
)
def test_a_fault_of_the_job_itself_fails_it(rig: Rig, error: Exception, attempts: int) -> None:
    tried: list[int] = []

    def job(context: RunContext) -> None:
        tried.append(context.failures)
        raise error

    rig.submit("batch")
    rig.engine(job)
    assert rig.run().state is RunState.FAILED
    assert tried == list(range(attempts))


def test_a_stopped_run_is_not_a_failed_one(rig: Rig, clock: ManualClock) -> None:
    run = rig.submit("streaming")
    begun = threading.Event()

    def job(context: RunContext) -> None:
        begun.set()
        rig.store.request_stop(run.job, run.number)
        context.stop.set()
        raise UnavailableError("the broker is away")

    rig.engine(job)
    assert begun.is_set()
    assert rig.run().state is RunState.CANCELED


@pytest.mark.parametrize(
    "error",
    [
        Py4JNetworkError("Answer from Java side is empty"),
        ConnectionRefusedError(111, "Connection refused"),
        ConnectionResetError(104, "Connection reset by peer"),
        RuntimeError("Caused by: org.apache.kafka.common.errors.TimeoutException: no"),
        RuntimeError("Caused by: java.net.ConnectException: Connection refused"),
        RuntimeError("org.sqlite.SQLiteException: [SQLITE_BUSY] The database file is locked"),
        RuntimeError("java.io.IOException: No space left on device"),
    ],
)
def test_what_is_away_is_no_fault_of_a_job(error: Exception) -> None:
    assert explain(error).retryable
    assert explain(error).exit_code == 8


def test_what_spark_raises_otherwise_is_the_jobs_fault() -> None:
    assert not explain(RuntimeError("[DIVIDE_BY_ZERO] Division by zero")).retryable
