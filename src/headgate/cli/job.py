"""`headgate job`: run, list, show, stop and repair jobs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from headgate.cli.console import Progress, console

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


@click.group()
def group() -> None:
    """Run, list, stop and repair jobs."""


@group.command("run")
@click.argument("job")
@click.option("--full", is_flag=True, help="Silver: rebuild the whole table.")
@click.option("--streaming", is_flag=True, help="Go on until stopped, and return at once.")
def run_job(job: str, full: bool, streaming: bool) -> None:
    """Run a job of the active dataset and wait for it.

    The running engine does the work; without one, this command is the engine while it lasts.

    \b
    Examples:
      headgate job run bronze
      headgate job run silver --full
      headgate job run bronze-orders
    """
    from headgate.jobs.requests import ask_for, raise_unless_finished

    settings, store = _open()
    with store:
        options = {"form": "full"} if full else {}
        asked = ask_for(settings, store, job, "streaming" if streaming else "batch", options)
        if streaming:
            console.done(f"{asked.job} run {asked.number} is {asked.state}: headgate job list")
            return
        ended = _carried_out(settings, store, asked)
        raise_unless_finished(ended)
        console.done(_sentence(ended))
        console.data(_report(ended), text="")


def _carried_out(settings: Settings, store: OpsStore, run: Run) -> Run:
    from headgate.engine.lease import active_engine
    from headgate.jobs.requests import wait_for

    with console.progress(f"{run.job} run {run.number}") as bar:
        watch = _watcher(bar)
        if active_engine(store) is None:
            from headgate.jobs.host import run_here

            return run_here(settings, store, run, watch)
        return wait_for(store, run, watch, lambda: _engine_alive(store))


def _watcher(bar: Progress) -> Callable[[Run], None]:
    def watch(run: Run) -> None:
        bar.total = run.progress.total
        bar.update(run.progress.records, f"{run.job} run {run.number} {run.state}")

    return watch


def _engine_alive(store: OpsStore) -> None:
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


@group.command("list")
@click.option("--job", default=None, help="Only this job's runs.")
@click.option("-n", "count", default=20, show_default=True, help="How many, newest first.")
def list_runs(job: str | None, count: int) -> None:
    """List runs, newest first."""
    _, store = _open()
    with store:
        console.data([_report(run) for run in store.runs(job, limit=count)])


@group.command("show")
@click.argument("job")
def show(job: str) -> None:
    """Show a job's newest run and its last batches."""
    from headgate.jobs.requests import job_name, split_job

    settings, store = _open()
    with store:
        name = job_name(*split_job(settings, job))
        latest = store.latest(name)
        rows = store.ledger(name)[-10:]
        batches = [
            {"batch": row.batch_id, "run": row.run, "read": row.read, **dict(row.outcomes)}
            for row in rows
        ]
        newest = [_report(latest)] if latest else []
        console.data({"runs": newest, "batches": batches}, text=_shown(latest, rows))


@group.command("stop")
@click.argument("job")
def stop(job: str) -> None:
    """Stop a job between two batches."""
    from headgate.engine.lease import active_engine
    from headgate.errors import UsageError
    from headgate.jobs.requests import job_name, split_job, wait_for
    from headgate.store.model import ACTIVE, RunState

    settings, store = _open()
    with store:
        name = job_name(*split_job(settings, job))
        latest = store.latest(name)
        if latest is None or latest.state not in ACTIVE:
            raise UsageError(f"{name} is not running", fix="headgate job list shows what is")
        if latest.state is RunState.SUBMITTED or active_engine(store) is None:
            ended = store.move(name, latest.number, RunState.CANCELED)
        else:
            store.request_stop(name, latest.number)
            ended = wait_for(store, latest, lambda run: None, lambda: _engine_alive(store))
        console.done(_sentence(ended))


@group.command("repair")
@click.argument("job")
@click.option("--yes", is_flag=True, help="Do not ask.")
def repair(job: str, yes: bool) -> None:
    """Set a damaged checkpoint aside and go on from what the table has committed.

    Nothing is deleted: the old checkpoint stays beside the new one.
    """
    from headgate.errors import UsageError
    from headgate.jobs.repair import repair_job
    from headgate.jobs.requests import split_job

    settings, store = _open()
    with store:
        kind, dataset = split_job(settings, job)
        if kind != "bronze":
            raise UsageError(f"{kind} has no checkpoint", fix="headgate job run silver --full")
        if not yes:
            click.confirm(f"Set the checkpoint of bronze-{dataset} aside?", abort=True, err=True)
        report = repair_job(settings, store, dataset)
    console.done(f"{report.job} goes on at {dict(report.offsets)}; the old one is {report.aside}")
    console.data(report, text="")


def _open() -> tuple[Settings, OpsStore]:
    from headgate.settings import load_settings
    from headgate.store.ops import OpsStore

    settings = load_settings()
    return settings, OpsStore.open(settings.ops_store_url)


def _seconds(run: Run) -> float | None:
    if run.started_at is None or run.ended_at is None:
        return None
    return round((run.ended_at - run.started_at).total_seconds(), 1)


def _sentence(run: Run) -> str:
    took = _seconds(run)
    words = run.progress.words or "nothing new"
    return f"{run.job} run {run.number} {run.state}" + (f" in {took} s: {words}" if took else "")


def _report(run: Run) -> RunReport:
    return RunReport(
        job=run.job,
        run=run.number,
        mode=run.mode,
        state=str(run.state),
        restarts=run.restarts,
        records=run.progress.records,
        seconds=_seconds(run),
        outcome=run.progress.words or (run.error_text or "").split(" | ")[0],
        submitted_at=f"{run.submitted_at:%Y-%m-%dT%H:%M:%SZ}",
    )


def _shown(run: Run | None, rows: tuple[object, ...]) -> str:
    if run is None:
        return "no run yet"
    return f"{_sentence(run)}\n{len(rows)} last batches in the ledger"
