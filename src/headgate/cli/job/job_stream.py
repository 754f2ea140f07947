"""`headgate job start`, `stop` and `restart`: streams, which go on until somebody stops them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from headgate.terminal.cli_console import console
from headgate.terminal.project import open_store
from headgate.terminal.runs import EngineWatch, report, sentence

if TYPE_CHECKING:
    from headgate.config.settings import Settings
    from headgate.core.ledger.ops_store import OpsStore
    from headgate.core.ledger.store_model import Run


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
        run = ask_for(settings, store, job, "streaming", {})
        console.done(f"{run.job} run {run.number} is {run.state}: headgate job show {run.job}")
        runs.append(run)
    return runs


def _wanted(settings: Settings) -> tuple[str, ...]:
    from headgate.core.engine.submit import streams_of

    if settings.mode == "batch":
        console.say("MODE is batch: bronze is started as a stream all the same, for this once")
    return streams_of(settings.mode)


def _running(settings: Settings, store: OpsStore) -> tuple[str, ...]:
    """The streams of the active dataset that run, or would if there were an engine."""
    from headgate.core.engine.submit import STREAMS, full_name
    from headgate.core.ledger.store_model import ACTIVE

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
    from headgate.core.ledger.store_model import ACTIVE
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
    from headgate.core.engine.engine_lease import active_engine
    from headgate.core.engine.submit import wait_for
    from headgate.core.ledger.store_model import RunState

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
    from headgate.core.ledger.store_model import ACTIVE

    settings, store = open_store()
    with store:
        need_engine(store)
        wanted = jobs or _running(settings, store) or _wanted(settings)
        for name in (full_name(settings, job) for job in wanted):
            latest = store.latest(name)
            if latest is not None and latest.state in ACTIVE:
                console.done(sentence(stopped(store, latest)))
        console.data([report(run) for run in started(settings, store, wanted)], text="")
