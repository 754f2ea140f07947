"""The controller: compares the runs that are wanted with those that run, and acts."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from pyspark.sql import SparkSession

from headgate.engine.context import Job, RunContext
from headgate.engine.lease import EngineLease
from headgate.engine.stream import explain
from headgate.errors import ConflictError, HeadgateError, LeaseLostError, OperationError
from headgate.settings import Settings
from headgate.store.model import Run, RunState
from headgate.store.ops import OpsStore

LOOK_SECONDS = 0.3
TRIES = 3
LONGEST_WAIT = 60.0
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
        store: OpsStore,
        lease: EngineLease,
        jobs: Mapping[str, Job],
        settings: Callable[[], Settings],
        only: str | None = None,
    ) -> None:
        self._session, self._store, self._lease = session, store, lease
        self._jobs, self._settings, self._only = jobs, settings, only
        self._active: dict[tuple[str, int], Active] = {}

    def run(self, stop: threading.Event) -> None:
        """Act until `stop` is set; then every run is stopped between two batches."""
        while not stop.wait(LOOK_SECONDS):
            self._lease.check()
            self.look()
        self.stop_all()

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
        self._active = {k: a for k, a in self._active.items() if a.thread.is_alive()}

    @property
    def busy(self) -> bool:
        return any(active.thread.is_alive() for active in self._active.values())

    def stop_all(self) -> None:
        """Stop every run and wait; the runs stay wanted, so the next engine goes on with them."""
        for active in self._active.values():
            active.stop.set()
        for active in self._active.values():
            active.thread.join(LONGEST_WAIT)

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
        self._session.sparkContext.setLocalProperty("spark.scheduler.pool", run.job)
        tries = 0
        while True:
            tries, began = tries + 1, time.monotonic()
            try:
                self._attempt(run, stop)
                return
            except LeaseLostError:
                return
            except Exception as error:  # a failing job must not take the others down
                failure = explain(error)
                self._note(run, error)
                if time.monotonic() - began > CALM_SECONDS:
                    tries = 1  # it had worked: this is another failure than the last one
                if not self._again(run, failure, tries, stop):
                    self._end(run, stop, failure)
                    return

    def _attempt(self, run: Run, stop: threading.Event) -> None:
        job = self._jobs.get(run.kind)
        if job is None:
            raise OperationError(f"this engine has no job of kind {run.kind}")
        context = RunContext(
            run, self._settings(), self._session, self._store, lambda: self._still_mine(run), stop
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

    def _again(self, run: Run, failure: HeadgateError, tries: int, stop: threading.Event) -> bool:
        """Whether the job is tried again: a declaration or a refusal does not mend itself.

        A stream waits for what is away as long as it takes; what fails on Spark itself twice is
        taken for the declaration's fault.
        """
        mends = failure.retryable or type(failure) is OperationError
        patient = run.mode == "streaming" and failure.retryable
        if not mends or (tries >= TRIES and not patient):
            return False
        self._store.restarted(run.job, run.number, failure.one_line)
        self._store.trouble(run.job, run.number, failure.code, failure.one_line)
        return not stop.wait(min(2.0**tries, LONGEST_WAIT))

    def _note(self, run: Run, error: Exception) -> None:
        """The whole trace, for whoever looks into the logs."""
        log = self._settings().home / "logs" / "failures.log"
        with log.open("a") as file:
            file.write(f"--- {datetime.now(UTC).isoformat()} {run.job} run {run.number}\n")
            file.write("".join(traceback.format_exception(error)))

    def _fail(self, run: Run, failure: HeadgateError) -> None:
        self._store.move(run.job, run.number, RunState.FAILED, failure.code, failure.one_line)
