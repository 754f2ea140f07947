"""`headgate job list`, `show`, `lag`: runs, pace, failures, last batches, and lag behind the topic by partition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from headgate.errors import count_of
from headgate.terminal.console import as_table, console, plain
from headgate.terminal.project import open_store
from headgate.terminal.runs import report

if TYPE_CHECKING:
    from headgate.config.settings import Settings
    from headgate.core.engine.job_kind import JobKind
    from headgate.core.engine.job_status import JobView
    from headgate.core.engine.lag import LagReport
    from headgate.core.ledger.model import Run
    from headgate.core.ledger.ops_store import OpsStore


# A minute of a stream that is triggered each second.
BATCHES = 60


@dataclass(frozen=True)
class Shown:
    """What `job show` prints."""

    view: JobView
    lag_records: int | None
    lag_seconds: float | None
    lag_words: str
    group: str
    revision: str = ""
    keys: int | None = None
    filters: tuple[object, ...] = ()


@click.command("list")
@click.option("--job", default=None, help="Only this job's runs.")
@click.option("-n", "count", default=20, show_default=True, help="How many, newest first.")
@click.option("--newest", is_flag=True, help="Only the newest run of each job.")
def list_runs(job: str | None, count: int, newest: bool) -> None:
    """List runs, newest first. Those under way are always shown.

    \b
    Examples:
      headgate job list
      headgate job list --newest
      headgate job list --job bronze-orders -n 5
    """
    from headgate.core.engine.lease import active_engine
    from headgate.core.engine.submit import full_name

    settings, store = open_store()
    with store:
        engine = active_engine(store) is not None
        name = full_name(settings, job) if job else None
        runs = store.runs(name)
    if newest:
        runs = newest_of_each(runs)
    shown = cut_to(runs, count)
    console.data([report(run, engine=engine) for run in shown])
    if len(shown) < len(runs):
        what = "jobs" if newest else "runs"
        console.say(f"{len(shown)} of {len(runs)} {what} are shown: -n {len(runs)} shows all")


def newest_of_each(runs: Sequence[Run]) -> tuple[Run, ...]:
    """The newest run of each job, newest first as the runs are."""
    by_job: dict[str, Run] = {}
    for run in runs:
        by_job.setdefault(run.job, run)
    return tuple(by_job.values())


def cut_to(runs: Sequence[Run], count: int) -> tuple[Run, ...]:
    """The first `count` runs, and any later one that is under way."""
    from headgate.core.ledger.model import ACTIVE

    return tuple(run for place, run in enumerate(runs) if place < count or run.state in ACTIVE)


@click.command("show")
@click.argument("job")
def show(job: str) -> None:
    """Show how a job stands: its pace, its lag, its failures and its last batches.

    \b
    Examples:
      headgate job show bronze
      headgate -o json job show silver-orders
      headgate job show reconcile-orders
      headgate job show router-raw-event-headers
    """
    from headgate.core.engine.job_kind import find_trigger
    from headgate.core.engine.job_status import view
    from headgate.core.engine.submit import job_name, split_job
    from headgate.core.ledger.ops_store import utc_now
    from headgate.errors import UsageError

    settings, store = open_store()
    with store:
        kind, subject = split_job(settings, job)
        name = job_name(kind.name, subject)
        run = store.latest(name)
        if run is None:
            raise UsageError(
                f"{name} has not run yet", fix=f"headgate job run {job}, or job start {job}"
            )
        rows = store.newest_batches(name, BATCHES)
        trigger = find_trigger(run) or settings.trigger_seconds
        seen = view(kind, run, rows, trigger, utc_now())
        shown = _shown(settings, store, seen, kind, run)
        console.data(shown, text=_text(shown, trigger, _engine(store)))


def _engine(store: OpsStore) -> bool:
    from headgate.core.engine.lease import active_engine

    return active_engine(store) is not None


def _shown(settings: Settings, store: OpsStore, seen: JobView, kind: JobKind, run: Run) -> Shown:
    """The job with its lag, where it can be measured, and what its kind shows besides."""
    from headgate.core.engine.lag import group_words, measure
    from headgate.errors import HeadgateError

    own = kind.details(store, run)
    shown = Shown(
        seen, own.lag_records, None, own.lag_words, "", own.revision, own.keys, own.filters
    )
    if not kind.follows_topics:
        return shown
    try:
        lag = measure(settings, store, kind, run.subject)
    except HeadgateError as error:
        return replace(shown, lag_words=f"not known: {error.what}")
    group = group_words(settings, store, lag)
    return replace(
        shown, lag_records=lag.records, lag_seconds=lag.seconds, lag_words=lag.words, group=group
    )


def _text(shown: Shown, trigger: float, engine: bool) -> str:
    seen, pace = shown.view, shown.view.pace
    how = "as a stream" if seen.mode == "streaming" else "in batch mode"
    since = f" since {seen.since}" if seen.since else ""
    lines = {
        "records": f"{seen.records:,} in {count_of(seen.batches, 'batch', 'batches')} of this run",
        "rows/s": f"{pace.rows_in_per_s:,} in, {pace.rows_out_per_s:,} out, over the last minute",
        "last batch": _last_batch(shown, trigger),
        "lag": shown.lag_words,
        "restarts": f"{seen.restarts}" + (f", last {seen.last_restart}" * bool(seen.last_restart)),
        "group": shown.group,
        "rules": f"revision {shown.revision[:12]} judges" if shown.revision else "",
        "keys": "" if shown.keys is None else f"{shown.keys:,} seen keys are kept",
        "engine": "" if engine else "none is running: make up",
    }
    told = [f"  {name:<11} {words}" for name, words in lines.items() if words]
    head = [f"{seen.job} run {seen.run}: {seen.state} {how}{since}", *told, *_trouble(seen)]
    table = as_table([plain(batch) for batch in seen.last]) if seen.last else "no batch yet"
    filters = as_table([plain(one) for one in shown.filters]) if shown.filters else ""
    return "\n".join([*head, "", table, *(["", filters] if filters else [])])


def _last_batch(shown: Shown, trigger: float) -> str:
    pace = shown.view.pace
    if pace.last_batch_seconds is None:
        return ""
    words = f"{pace.last_batch_seconds:g} s"
    if pace.processed_per_s is not None:
        words += f", {pace.processed_per_s:,.0f} rows/s while batches ran"
    if pace.backpressure is not None:
        words += f"; backpressure {pace.backpressure:.0%} of the {trigger:g} s trigger"
    if pace.falls_behind:
        words += ": it falls behind (raise TRIGGER_SECONDS, or give the engine more cores)"
    return words


def _trouble(seen: JobView) -> list[str]:
    """The error in words: what, why, what to do."""
    what, *rest = seen.trouble.split(" | ")
    labels = ("why", "do")
    told = [f"  {label:<11} {words}" for label, words in zip(labels, rest, strict=False)]
    return [f"  {'trouble':<11} {what}", *told] if what else []


@click.command("lag")
@click.argument("job", default="bronze")
def lag(job: str) -> None:
    """Show the lag per partition, in records and in seconds; exit 5 above DLQ_MAX dead letters.

    COMMITTED is where the next batch starts; SECONDS is the age of the oldest record that is not
    read yet. Works without an engine.

    \b
    Examples:
      headgate job lag
      headgate job lag bronze-orders
      headgate job lag reconcile-orders
      headgate job lag reconcile-business
      headgate -o json job lag
    """
    from headgate.core.engine.lag import refuse_too_many_letters
    from headgate.core.engine.lag import report as lag_report
    from headgate.core.engine.submit import split_job
    from headgate.errors import UsageError

    settings, store = open_store()
    kind, subject = split_job(settings, job)
    if not kind.follows_topics:
        raise UsageError(
            f"{kind.name} reads no topic", fix=f"headgate job show {job} tells its lag"
        )
    with store:
        found = lag_report(settings, store, kind, subject)
    console.data(found, text=_render_lag(found))
    refuse_too_many_letters(found)


def _render_lag(found: LagReport) -> str:
    rows = [plain(partition) for partition in found.lag.partitions]
    return "\n".join(
        [
            f"{found.lag.job} on {found.lag.topic}: {found.lag.words}",
            as_table(rows),
            f"dead letters: {found.dead_letters:,} of at most {found.dlq_max:,}",
            f"consumer group {found.group}: {found.group_words}",
        ]
    )
