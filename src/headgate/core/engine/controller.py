"""The controller: compare the runs that are wanted with those that run, start and stop threads for them.

The driver's JVM is watched by the process that started it. What happens to a run whose attempt fails:

    the driver is lost          stays wanted; the next engine goes on with it. A batch run that loses
                                its driver LOSSES times without settling a batch fails.
    the lease is lost           stays wanted; the other engine has it.
    broker, catalog, disk away  tried again: a stream as long as it takes, a batch run for
                                AWAY_SECONDS. No try is counted.
    someone else changed it     tried again: a stream as long as it takes, a batch run TRIES times.
    Spark raised something      tried again, TRIES times in all; then it fails.
    anything else               fails: a declaration or a refusal does not mend itself.
"""

from __future__ import annotations

import signal
import subprocess
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from headgate.config.settings import Settings
from headgate.core.engine.lease import EngineLease
from headgate.core.engine.run import Job, RunContext
from headgate.core.engine.stream import explain
from headgate.core.lake.spark import context_runs
from headgate.core.ledger.model import Run, RunState
from headgate.core.ledger.ops_store import OpsStore
from headgate.errors import (
    ConflictError,
    DriverLostError,
    HeadgateError,
    LeaseLostError,
    OperationError,
    UnavailableError,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# With which -XX:+ExitOnOutOfMemoryError ends a JVM.
OUT_OF_MEMORY = 3
# Sockets of a killed process close before its parent can reap it.
REAP_SECONDS = 2.0


class Driver:
    """Tells whether the JVM still works for this process, and in words why it does not.

    It is lost for good once its process has ended, or once a call into it has failed because its
    gateway or its SparkContext is closed.
    """

    def __init__(
        self, process: subprocess.Popen[bytes] | None, answers: Callable[[], bool], heap: str
    ) -> None:
        self._process = process
        self._answers = answers
        self._heap = heap
        self._silent = False

    @classmethod
    def of(cls, session: SparkSession, settings: Settings) -> Driver:
        """The driver of a session that was started in this process."""
        from headgate.core.engine.session import gateway_process

        answers = partial(context_runs, session)
        return cls(gateway_process(), answers, settings.spark_driver_memory)

    def is_lost(self) -> bool:
        """Whether its process has ended or it was found silent before; makes no call into it."""
        return self._silent or (self._process is not None and self._process.poll() is not None)

    def has_failed(self) -> bool:
        """Whether it is lost, by calling into it: asked after any failure, which may be its own."""
        if self.is_lost():
            return True
        try:
            self._silent = not self._answers()
        except Exception:  # py4j raises its own errors and those of sockets
            self._silent = True
        if self._silent and self._process is not None:
            try:
                self._process.wait(REAP_SECONDS)
            except subprocess.TimeoutExpired:
                return True
        return self._silent

    def loss(self) -> DriverLostError:
        """Why it is lost, what that means, and what to do."""
        code = self._process.poll() if self._process is not None else None
        goes_on = "the next engine goes on with its jobs"
        if code is None:
            return DriverLostError(
                "the engine's Spark driver answers no more",
                why="its SparkContext was stopped or its gateway closed",
                fix=f"{goes_on}; logs/spark.log in HEADGATE_HOME may say why",
            )
        if code == OUT_OF_MEMORY:
            return DriverLostError(
                f"the engine's JVM ran out of memory (heap {self._heap})",
                why=f"SPARK_DRIVER_MEMORY is {self._heap}, and a job needed more",
                fix="raise SPARK_DRIVER_MEMORY and start the engine again, or lower"
                " MAX_OFFSETS_PER_BATCH",
            )
        if code < 0:
            return DriverLostError(
                f"the engine's JVM was killed by signal {-code}",
                why="the kernel does that when the machine runs out of memory"
                if -code == signal.SIGKILL
                else "it crashed, or somebody ended it",
                fix=f"{goes_on}; if it happens again, lower SPARK_DRIVER_MEMORY or free memory",
            )
        return DriverLostError(
            f"the engine's JVM ended with exit code {code}",
            why="nobody had asked it to",
            fix=f"{goes_on}; logs/engine.log in HEADGATE_HOME may say why",
        )


LOOK_SECONDS = 0.3
TRIES = 3
# So often a batch run may be under way when the driver is lost, with no batch settled in between.
LOSSES = 3
# So long a batch run, for which somebody waits, is tried again while something needed is away.
AWAY_SECONDS = 60.0
# A lost driver makes every call of a run fail at once; what still hangs then is left behind.
LOST_STOP_SECONDS = 5.0
LONGEST_WAIT = 60.0
# What comes back is not left waiting for long.
LONGEST_AWAY_PAUSE = 15.0
CALM_SECONDS = 300.0


@dataclass
class Active:
    """A run that this engine is carrying out."""

    run: Run
    stop: threading.Event
    thread: threading.Thread


class Controller:
    """Hosts the runs of one engine, each in a thread and a scheduling pool of its own."""

    def __init__(
        self,
        session: SparkSession,
        driver: Driver,
        store: OpsStore,
        lease: EngineLease,
        jobs: Mapping[str, Job],
        settings: Callable[[], Settings],
        only: str | None = None,
    ) -> None:
        self._session, self._driver = session, driver
        self._store, self._lease = store, lease
        self._jobs, self._settings, self._only = jobs, settings, only
        self._active: dict[tuple[str, int], Active] = {}

    def run(self, stop: threading.Event) -> None:
        """Act until `stop` is set; then every run is stopped between two batches."""
        while not stop.wait(LOOK_SECONDS):
            self.check()
            self.look()
        self.stop_all()

    def check(self) -> None:
        """Raise when this engine can work no more: its lease or its driver is lost."""
        self._lease.check()
        if self._driver.is_lost():
            loss = self._driver.loss()
            for active in self._active.values():
                self._note_loss(active.run, loss)
            raise loss

    def look(self) -> None:
        """One comparison of what is wanted with what runs."""
        wanted = self._store.runs(states=(RunState.SUBMITTED, RunState.RUNNING))
        for run in wanted:
            key = (run.job, run.number)
            if self._only in (None, run.job) and key not in self._active:
                with suppress(ConflictError):  # it was stopped just now
                    self._start(run)
            elif key in self._active and run.stop_requested:
                self._active[key].stop.set()
        running = {k: a for k, a in self._active.items() if a.thread.is_alive()}
        # A thread that ends because the driver is lost says so first: then its run is still needed.
        if not self._driver.is_lost():
            self._active = running

    @property
    def busy(self) -> bool:
        return any(active.thread.is_alive() for active in self._active.values())

    def stop_all(self) -> None:
        """Stop every run and wait; the runs stay wanted, so the next engine goes on with them."""
        for active in self._active.values():
            active.stop.set()
        limit = LOST_STOP_SECONDS if self._driver.is_lost() else LONGEST_WAIT
        for active in self._active.values():
            active.thread.join(limit)

    def _start(self, run: Run) -> None:
        # A run that is RUNNING was left by an engine that is gone: this one goes on with it.
        moved = self._store.claim(run.job, run.number, self._lease.holder)
        stop = threading.Event()
        thread = threading.Thread(
            target=self._carry_out, args=(moved, stop), name=run.job, daemon=True
        )
        self._active[(run.job, run.number)] = Active(moved, stop, thread)
        thread.start()

    def _carry_out(self, run: Run, stop: threading.Event) -> None:
        tries, away_since = 0, None
        while True:
            began = time.monotonic()
            try:
                self._attempt(run, stop, tries)
                return
            except LeaseLostError:
                return
            except Exception as error:  # a failing job must not take the others down
                self._note(run, error)
                if self._driver.has_failed():  # the failure is the driver's, not the job's
                    return
                failure, now = explain(error), time.monotonic()
                if now - began > CALM_SECONDS:  # it had worked: this is another failure
                    tries, away_since = 0, None
                if is_infrastructure(failure):
                    away_since = away_since or now
                else:
                    tries, away_since = tries + 1, None
                away = 0.0 if away_since is None else now - away_since
                if not self._again(run, failure, tries, away, stop):
                    self._end(run, stop, failure)
                    return

    def _attempt(self, run: Run, stop: threading.Event, failures: int) -> None:
        job = self._jobs.get(run.kind)
        if job is None:
            raise OperationError(f"this engine has no job of kind {run.kind}")
        self._session.sparkContext.setLocalProperty("spark.scheduler.pool", run.job)
        context = RunContext(
            run,
            self._settings(),
            self._session,
            self._store,
            lambda: self._still_mine(run),
            stop,
            failures=failures,
        )
        job(context)
        self._end(run, stop)

    def _end(self, run: Run, stop: threading.Event, failure: HeadgateError | None = None) -> None:
        """Where the run stands now: a run that an engine stops on its way out stays wanted."""
        if not stop.is_set():
            if failure is None:
                self._store.move(run.job, run.number, RunState.FINISHED)
            else:
                self._fail(run, failure)
        elif self._store.run(run.job, run.number).stop_requested:
            self._store.move(run.job, run.number, RunState.CANCELED)
        else:
            self._store.let_go(run.job, run.number)

    def _still_mine(self, run: Run) -> None:
        self._lease.check()
        now = self._store.run(run.job, run.number)
        if now.state is not RunState.RUNNING or now.engine != self._lease.holder:
            raise LeaseLostError(
                f"{run.job} run {run.number} is no longer carried out here",
                why=f"it is {now.state} on {now.engine}",
            )

    def _again(
        self, run: Run, failure: HeadgateError, tries: int, away: float, stop: threading.Event
    ) -> bool:
        """Wait until the job is due again; False when it is not tried again, or was stopped."""
        patient = run.mode == "streaming" and failure.retryable
        if is_infrastructure(failure):
            due = patient or away < AWAY_SECONDS
            pause = min(2.0 + away / 2, LONGEST_AWAY_PAUSE)
        else:
            mends = failure.retryable or type(failure) is OperationError
            due = mends and (patient or tries < TRIES)
            pause = min(2.0**tries, LONGEST_WAIT)
        if not due:
            return False
        self._store.count_restart(run.job, run.number, failure.one_line)
        self._store.trouble(run.job, run.number, failure.code, failure.one_line)
        return not stop.wait(pause)

    def _note_loss(self, run: Run, loss: DriverLostError) -> None:
        """Say why the run waits for another engine; a batch run that loses every one of them fails.

        A job may be what exhausts the JVM's memory. Without a bound a batch run of it would end one
        engine after another, and take the other jobs down each time.
        """
        self._store.trouble(run.job, run.number, loss.code, loss.one_line)
        times = self._store.count_loss(run.job, run.number)
        if run.mode == "batch" and times >= LOSSES:
            words = DriverLostError(
                loss.what,
                why=f"{times} times while this run was under way; {loss.why}",
                fix=loss.fix,
            )
            with suppress(ConflictError):  # it ended just before
                self._fail(run, words)

    def _note(self, run: Run, error: Exception) -> None:
        """The whole trace, for whoever looks into the logs."""
        log = self._settings().home / "logs" / "failures.log"
        with log.open("a") as file:
            file.write(f"--- {datetime.now(UTC).isoformat()} {run.job} run {run.number}\n")
            file.write("".join(traceback.format_exception(error)))

    def _fail(self, run: Run, failure: HeadgateError) -> None:
        self._store.move(run.job, run.number, RunState.FAILED, failure.code, failure.one_line)


def is_infrastructure(failure: HeadgateError) -> bool:
    """Whether something that the job needs is away: no fault of the job, and no try of it."""
    return isinstance(failure, UnavailableError) and failure.retryable
