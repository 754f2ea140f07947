"""Renders one run of a job, and waits for it: the active engine carries it out, else this process does."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headgate.errors import InterruptedByUserError, UnavailableError
from headgate.terminal.console import Progress, console

if TYPE_CHECKING:
    from headgate.config.settings import Settings
    from headgate.core.ledger.model import Run
    from headgate.core.ledger.ops_store import OpsStore


@dataclass(frozen=True)
class RunReport:
    """One run as a person or a script sees it."""

    job: str
    run: int
    mode: str
    state: str
    restarts: int
    records: int
    seconds: float | None
    outcome: str
    submitted_at: str


def report(run: Run, *, engine: bool = True) -> RunReport:
    """The run; `engine` says whether one is active, without which nothing goes on."""
    return RunReport(
        job=run.job,
        run=run.number,
        mode=run.mode,
        state=str(run.state),
        restarts=run.restarts,
        records=run.progress.records,
        seconds=seconds(run),
        outcome=_outcome(run, engine=engine),
        submitted_at=f"{run.submitted_at:%Y-%m-%dT%H:%M:%SZ}",
    )


def sentence(run: Run) -> str:
    took = seconds(run)
    words = run.progress.words or "nothing new"
    return f"{run.job} run {run.number} {run.state}" + (f" in {took} s: {words}" if took else "")


def seconds(run: Run) -> float | None:
    if run.started_at is None or run.ended_at is None:
        return None
    return round((run.ended_at - run.started_at).total_seconds(), 1)


def _outcome(run: Run, *, engine: bool) -> str:
    from headgate.core.ledger.model import ACTIVE, RunState

    error = (run.error_text or "").split(" | ")[0]
    if run.state is RunState.FAILED:
        return error or run.progress.words
    if run.state not in ACTIVE:
        nothing = "nothing new" if run.state is RunState.FINISHED else ""
        return run.progress.words or error or nothing
    if not engine:
        return "waits for an engine: make up" + (f" ({error})" if error else "")
    return f"waits: {error}" if error else run.progress.words


class EngineWatch:
    """Watches over a wait that an engine must bring to an end, and gives up on a lost engine.

    Called again and again while waiting. `say` is told when the engine that carries out the run is
    gone and when another has taken the run up. UnavailableError is raised when nobody has held the
    engine's lease for ABSENT_SECONDS, or when no engine has taken up the run for IDLE_SECONDS: one
    that dies each time it starts holds the lease in between.
    """

    ABSENT_SECONDS = 45.0
    IDLE_SECONDS = 180.0

    def __init__(self, store: OpsStore, say: Callable[[str], None]) -> None:
        self._store = store
        self._say = say
        self._reported = False
        self._absent_since: float | None = None
        self._idle_since: float | None = None

    def __call__(self, run: Run | None = None) -> None:
        """Look once; `run` is what is waited for, where it is a run."""
        from headgate.core.engine.lease import active_engine

        now, holder = time.monotonic(), active_engine(self._store)
        if holder is not None and (run is None or run.engine == holder):
            if self._reported:
                self._say("an engine is there again and goes on")
            self._reported, self._absent_since, self._idle_since = False, None, None
            return
        self._absent_since = (self._absent_since or now) if holder is None else None
        self._idle_since = self._idle_since or now
        if holder is None and not self._reported:
            self._reported = True
            self._say(f"the engine went away{_reason(run)}; waiting for it to come back")
        absent = self._absent_since is not None and now - self._absent_since > self.ABSENT_SECONDS
        if absent or now - self._idle_since > self.IDLE_SECONDS:
            raise UnavailableError(
                "the engine went away and none has taken its place",
                why=_loss(run) or ("nobody holds its lease" if absent else "it does not get ready"),
                fix="headgate local status says why; make up, then the same command again",
            )


def _loss(run: Run | None) -> str:
    """What the lost engine noted of its end, when it could."""
    return (run.error_text or "").split(" | ")[0] if run else ""


def _reason(run: Run | None) -> str:
    return f" ({_loss(run)})" if _loss(run) else ""


def carried_out(settings: Settings, store: OpsStore, run: Run) -> Run:
    """The run once it has ended: done by the active engine, else by this process."""
    from headgate.core.engine.lease import active_engine
    from headgate.core.engine.submit import wait_for

    elsewhere = active_engine(store) is not None
    try:
        with console.progress(f"{run.job} run {run.number}") as bar:
            watch = _watcher(bar)
            if elsewhere:
                return wait_for(store, run, watch, EngineWatch(store, console.say))
            from headgate.core.engine.host import run_here

            return run_here(settings, store, run, watch)
    except KeyboardInterrupt:
        raise interrupted(run, elsewhere=elsewhere) from None


def interrupted(run: Run, *, elsewhere: bool) -> InterruptedByUserError:
    """What becomes of a run whose command was interrupted while it waited."""
    if elsewhere:
        return InterruptedByUserError(
            f"interrupted: {run.job} run {run.number} goes on in the engine",
            fix=f"headgate job stop {run.job} stops it; the same command again waits for it",
        )
    return InterruptedByUserError(
        f"interrupted: {run.job} run {run.number} was stopped between two batches",
        fix="the same command again goes on with it, and so does the next engine;"
        f" headgate job stop {run.job} gives it up",
    )


def _watcher(bar: Progress) -> Callable[[Run], None]:
    from headgate.core.ledger.model import ACTIVE

    def watch(run: Run) -> None:
        bar.total = run.progress.total
        away = run.error_text if run.state in ACTIVE else None
        waits = f", waits: {away.split(' | ')[0]}" if away else ""
        bar.update(run.progress.records, f"{run.job} run {run.number} {run.state}{waits}")

    return watch
