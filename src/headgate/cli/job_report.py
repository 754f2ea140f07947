"""One run as a person or a script sees it, and what every verb of `headgate job` opens first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headgate.settings import Settings
    from headgate.store.model import Run
    from headgate.store.ops import OpsStore


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


def open_store() -> tuple[Settings, OpsStore]:
    from headgate.settings import load_settings
    from headgate.store.ops import OpsStore

    settings = load_settings()
    return settings, OpsStore.open(settings.ops_store_url)


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
    from headgate.store.model import ACTIVE, RunState

    error = (run.error_text or "").split(" | ")[0]
    if run.state not in ACTIVE:
        nothing = "nothing new" if run.state is RunState.FINISHED else ""
        return run.progress.words or error or nothing
    if not engine:
        return "waits for an engine: make up"
    return f"waits: {error}" if error else run.progress.words


def engine_alive(store: OpsStore) -> None:
    """Raise once nobody has held the engine's lease for a while."""
    import time

    from headgate.engine.lease import SECONDS, active_engine
    from headgate.errors import UnavailableError

    patience = time.monotonic() + 2 * SECONDS
    while active_engine(store) is None:
        if time.monotonic() > patience:
            raise UnavailableError(
                "the engine went away", why="nobody holds its lease", fix="make up, then try again"
            )
        time.sleep(0.5)
