"""`headgate job run`, `start`, `stop`, `restart`: one batch run, waited for; streams, which go on until stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from headgate.quality.cli.report import FAIL_ON, LEVELS
from headgate.terminal.console import console
from headgate.terminal.project import open_store
from headgate.terminal.runs import EngineWatch, carried_out, report, sentence

if TYPE_CHECKING:
    from headgate.config.settings import Settings
    from headgate.core.ledger.model import Run, RunOptions
    from headgate.core.ledger.ops_store import OpsStore


@click.command("run")
@click.argument("job")
@click.option("--full", is_flag=True, help="Silver: rebuild the whole table.")
@click.option("--from", "first", metavar="DATE", help="Silver: only the rows of these dates anew,")
@click.option("--to", "last", metavar="DATE", help="up to this one, even beside a stream.")
@click.option("--fail-on", type=click.Choice(LEVELS), help=FAIL_ON)
def run_job(job: str, full: bool, first: str | None, last: str | None, fail_on: str | None) -> None:
    """Run a job of the active dataset and wait for it.

    The running engine does the work; without one, this command is the engine while it lasts.

    \b
    Examples:
      headgate job run bronze
      headgate job run silver --full
      headgate job run silver --from 2024-01-03 --to 2024-01-05
      headgate job run bronze-orders
      headgate job run quality-payments
      headgate job run reconcile-customer --fail-on error
    """
    from headgate.core.engine.job_kind import KINDS
    from headgate.core.engine.lease import active_engine
    from headgate.core.engine.submit import AS_DECLARED, ask_for, job_name, need_broker
    from headgate.terminal.project import active_dataset

    settings, store = open_store()
    if job in KINDS and KINDS[job].subject == "dataset":
        job = job_name(job, active_dataset(settings))
    _check_gate(job, fail_on)
    with store:
        request = _request_rebuild(settings, job) if full else AS_DECLARED
        if first or last:
            job, request = _request_backfill(settings, job, first, last, full=full)
        if active_engine(store) is None:
            need_broker(settings, job)
        run = ask_for(settings, store, job, "batch", request)
        finish(settings, store, run, fail_on=fail_on)


def _check_gate(job: str, fail_on: str | None) -> None:
    from headgate.core.engine.job_kind import KINDS
    from headgate.errors import UsageError

    if not fail_on:
        return
    judging = [name for name, kind in KINDS.items() if kind.write_report]
    if not job.startswith(tuple(f"{name}-" for name in judging)):
        raise UsageError(
            f"--fail-on is for {' and '.join(judging)} jobs, and {job} judges by no rules"
        )


def _request_rebuild(settings: Settings, job: str) -> RunOptions:
    """The request to rebuild a whole table; silver alone can, and any other job runs as it is declared."""
    from headgate.core.engine.submit import AS_DECLARED, split_job
    from headgate.pipeline.job_kinds import SILVER, SilverRunForm, SilverRunOptions

    kind, _ = split_job(settings, job)
    return SilverRunOptions(form=SilverRunForm.FULL) if kind is SILVER else AS_DECLARED


def _request_backfill(
    settings: Settings, job: str, first: str | None, last: str | None, *, full: bool
) -> tuple[str, RunOptions]:
    """The job that makes some dates of silver anew, and the request for them."""
    from headgate.core.engine.submit import job_name, split_job
    from headgate.errors import UsageError
    from headgate.pipeline.job_kinds import BackfillRunOptions
    from headgate.pipeline.revision import Dates

    kind, dataset = split_job(settings, job)
    if kind.name not in ("silver", "backfill") or full:
        raise UsageError("--from and --to are for silver, and not with --full")
    return job_name("backfill", dataset), BackfillRunOptions(dates=Dates.parse(first, last))


def finish(settings: Settings, store: OpsStore, asked: Run, *, fail_on: str | None = None) -> Run:
    """Wait for the run and say how it ended; its failure, or what its rules found, is raised."""
    from headgate.app import load
    from headgate.core.engine.job_kind import KINDS
    from headgate.core.engine.submit import raise_unless_finished

    ended = carried_out(settings, store, asked)
    raise_unless_finished(ended)
    console.done(sentence(ended))
    console.data(report(ended), text="")
    entry = KINDS[ended.kind].write_report
    if entry:
        load(entry)(settings, store, ended, fail_on)
    return ended


@click.command("start")
@click.argument("jobs", nargs=-1, metavar="[JOB]...")
def start(jobs: tuple[str, ...]) -> None:
    """Start streams on the running engine, and return at once.

    Without a JOB, MODE says which: bronze, and with MODE=streaming_silver silver too. A stream goes
    on from where the last run stopped, batch or stream; the first one from the topic's first record.

    \b
    Examples:
      headgate job start
      MODE=streaming_silver headgate job start
      headgate job start bronze-orders
    """
    settings, store = open_store()
    with store:
        console.data([report(run) for run in started(settings, store, jobs)], text="")


def started(settings: Settings, store: OpsStore, jobs: tuple[str, ...]) -> list[Run]:
    from headgate.core.engine.submit import ask_for, need_engine

    need_engine(store)
    runs: list[Run] = []
    for job in jobs or _wanted(settings):
        run = ask_for(settings, store, job, "streaming")
        console.done(f"{run.job} run {run.number} is {run.state}: headgate job show {run.job}")
        runs.append(run)
    return runs


def _wanted(settings: Settings) -> tuple[str, ...]:
    from headgate.config.settings import streams_of

    if settings.mode == "batch":
        console.say("MODE is batch: bronze is started as a stream all the same, for this once")
    return streams_of(settings.mode)


def _running(settings: Settings, store: OpsStore) -> tuple[str, ...]:
    """The streams of the active dataset that run, or would if there were an engine."""
    from headgate.config.settings import STREAMS
    from headgate.core.engine.submit import full_name
    from headgate.core.ledger.model import ACTIVE

    found = (store.latest(full_name(settings, kind)) for kind in STREAMS)
    streams = [run for run in found if run and run.state in ACTIVE and run.mode == "streaming"]
    return tuple(run.job for run in streams)


@click.command("stop")
@click.argument("job")
def stop(job: str) -> None:
    """Stop a job between two batches.

    \b
    Examples:
      headgate job stop bronze
      headgate job stop silver-orders
    """
    from headgate.core.engine.submit import full_name
    from headgate.core.ledger.model import ACTIVE
    from headgate.errors import UsageError

    settings, store = open_store()
    with store:
        name = full_name(settings, job)
        latest = store.latest(name)
        if latest is None or latest.state not in ACTIVE:
            raise UsageError(f"{name} is not running", fix="headgate job list shows what is")
        console.done(sentence(stopped(store, latest)))


def stopped(store: OpsStore, run: Run) -> Run:
    """The run once it has stopped; what no engine has begun, or is there to end, just ends."""
    from headgate.core.engine.lease import active_engine
    from headgate.core.engine.submit import wait_for
    from headgate.core.ledger.model import RunState

    if run.state is RunState.SUBMITTED or active_engine(store) is None:
        return store.move(run.job, run.number, RunState.CANCELED)
    console.say(f"{run.job} run {run.number} stops after the batch under way")
    store.request_stop(run.job, run.number)
    return wait_for(store, run, lambda run: None, EngineWatch(store, console.say))


@click.command("restart")
@click.argument("jobs", nargs=-1, metavar="[JOB]...")
def restart(jobs: tuple[str, ...]) -> None:
    """Stop streams between two batches, and start them again on the same checkpoint.

    Without a JOB, the streams of the active dataset that run; where none does, those that MODE says.
    A changed manifest takes effect with the new run. A stream that does not run is just started.

    \b
    Examples:
      headgate job restart
      headgate job restart bronze-orders
    """
    from headgate.core.engine.submit import full_name, need_engine
    from headgate.core.ledger.model import ACTIVE

    settings, store = open_store()
    with store:
        need_engine(store)
        wanted = jobs or _running(settings, store) or _wanted(settings)
        for name in (full_name(settings, job) for job in wanted):
            latest = store.latest(name)
            if latest is not None and latest.state in ACTIVE:
                console.done(sentence(stopped(store, latest)))
        console.data([report(run) for run in started(settings, store, wanted)], text="")
