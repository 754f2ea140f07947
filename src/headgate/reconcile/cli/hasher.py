"""`headgate reconcile hasher|letters|reread|audit`: what runs between Kafka and Cassandra."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import click

from headgate.errors import HeadgateError, InterruptedByUserError, UsageError
from headgate.terminal.console import Progress, console

if TYPE_CHECKING:
    from datetime import datetime

    from headgate.config.settings import Settings
    from headgate.reconcile.hasher.plan import Given, HasherPlan, Mode
    from headgate.reconcile.hasher.run import Hashed


MODES = ("lookup", "cdc")
# Next to the engine's: infra/prometheus.yml and infra/datadog/openmetrics.yaml scrape both.
METRICS_PORT = 9250


@click.command()
@click.argument("table")
@click.option("--mode", type=click.Choice(MODES), default="lookup", show_default=True)
@click.option("--once", is_flag=True, help="Stop at the topic's end.")
@click.option(
    "--group", metavar="NAME", help="Consumer group; hashers of one group share the work."
)
@click.option("--topic", metavar="NAME", help="Read this topic instead of the declared one.")
@click.option("--tombstones", is_flag=True, help="Send a tombstone for a delete that is confirmed.")
@click.option("--in-flight", type=click.IntRange(1, 10_000), default=100, show_default=True)
@click.option("--timeout", type=click.FloatRange(0.05, 600), default=5.0, show_default=True)
@click.option("--retries", type=click.IntRange(0, 100), default=3, show_default=True)
@click.option(
    "--reread-after",
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    help="Read a key that differs again after so long. Default: half of window and grace.",
)
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65535),
    default=METRICS_PORT,
    show_default=True,
    help="Port of its figures, or the next free one; 0: any.",
)
def reconcile_hasher(
    table: str,
    mode: str,
    once: bool,
    group: str | None,
    topic: str | None,
    tombstones: bool,
    in_flight: int,
    timeout: float,
    retries: int,
    reread_after: float | None,
    metrics_port: int,
) -> None:
    """Send the hash of each row of the cloud that an event or a change points to.

    lookup reads Topic-1 and looks the rows up; cdc reads Debezium's change events of the table. Each
    reading goes to Topic-2, keyed by the bare key. A row that is not there has a null hash.

    A lookup that times out is tried --retries more times, then its event is a dead letter on
    dlq-cassandra-cloud. While Cassandra is away altogether, nothing is read and nothing is lost.

    \b
    Examples:
      headgate reconcile hasher business
      headgate reconcile hasher business --once
      headgate reconcile hasher business --mode cdc --group hashers
    """
    from headgate.reconcile.hasher.plan import Given

    given = Given(
        mode=cast("Mode", mode),
        once=once,
        group=group,
        topic=topic,
        tombstones=tombstones,
        in_flight=in_flight,
        timeout=timeout,
        retries=retries,
        reread_after=reread_after,
        metrics_port=metrics_port,
    )
    done = hashed(table, given)
    console.data(done, words(done))
    if done.stopped and once:
        raise InterruptedByUserError(
            "stopped before the end",
            why=f"{done.records:,} records are done with, all of them acknowledged",
            fix="run it again: it goes on where the group stands",
        )


def hashed(table: str, given: Given) -> Hashed:
    """Run a hasher under the settings in force."""
    from headgate.config.settings import load_settings
    from headgate.reconcile.cassandra.session import place_of
    from headgate.reconcile.hasher.run import run_hasher

    settings = load_settings()
    plan = planned(settings, table, given)
    place = place_of(settings)
    source = f"{plan.topic}, rows of {plan.cassandra_table}, group {plan.group}"
    console.say(f"{plan.job}: {source} → {plan.cloud_topic}")
    with console.progress(f"records of {table} hashed") as progress:
        return run_hasher(plan, place, _Watcher(progress), settings.dogstatsd_address)


def planned(settings: Settings, table: str, given: Given) -> HasherPlan:
    from headgate.core.kafka.topics import bootstrap_of
    from headgate.quality.compile.resolve import open_rules
    from headgate.reconcile.hasher.plan import plan_of

    return plan_of(settings, open_rules(settings, table).table, bootstrap_of(settings), given)


class _Watcher:
    """Shows how far the hasher is, and what it says."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def advance(self, records: int) -> None:
        self._progress.advance(records)

    def say(self, words: str) -> None:
        console.say(words)


def words(done: Hashed) -> str:
    """The report for a person."""
    lines = [
        f"{done.table} ({done.mode}): {done.records:,} records, {done.readings:,} readings"
        f" in {done.elapsed_seconds:.1f} s ({done.per_second:,.0f} lookups/s)"
    ]
    notes = {
        "rows not found": done.not_found,
        "tombstones": done.tombstones,
        "partial rows": done.partial,
        "dead letters": done.dead_letters,
        "read again": done.rereads,
        "of them changed": done.changed,
        "left to read again": done.rereads_left,
        **{f"skipped, {why}": n for why, n in done.skipped.items()},
    }
    return "\n".join(lines + [f"  {name:<22} {n:>9,}" for name, n in notes.items() if n])


SHOWN = 50


@click.command()
@click.argument("table")
@click.option("--reason", metavar="CODE", help="Only this reason code.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=SHOWN, show_default=True)
def reconcile_letters(table: str, reason: str | None, limit: int) -> None:
    """List dead letters of TABLE's hasher and of connectors, the newest first, without their rows.

    They stand on the topic dlq-cassandra-cloud: `headgate dlq` tells of those that jobs refuse.
    What was mended since is read again by `headgate reconcile reread TABLE --letters`.

    \b
    Examples:
      headgate reconcile letters business
      headgate -o json reconcile letters business --reason dq_cassandra_timeout
    """
    from headgate.config.settings import load_settings
    from headgate.reconcile.hasher.plan import Given
    from headgate.reconcile.hasher.publisher import cloud_letters

    plan = planned(load_settings(), table, Given())
    found = [each for each in cloud_letters(plan) if reason in (None, each.reason_code)]
    console.data(found[::-1][:limit])
    if len(found) > limit:
        console.say(f"{len(found) - limit:,} older ones are not shown; --limit shows more")


@click.command()
@click.argument("table")
@click.option("--key", "keys", multiple=True, metavar="PK", help="This key; may be repeated.")
@click.option("--letters", is_flag=True, help="Every key of `headgate reconcile letters TABLE`.")
@click.option("--reason", metavar="CODE", help="With --letters: only those of this reason code.")
@click.option("--dry-run", is_flag=True, help="Say which keys, and ask for none.")
def reconcile_reread(
    table: str, keys: tuple[str, ...], letters: bool, reason: str | None, dry_run: bool
) -> None:
    """Ask the hasher of TABLE to look keys up in Cassandra again; their verdicts follow.

    To ask twice does no harm: a reading that says nothing new changes no verdict.

    \b
    Examples:
      headgate reconcile reread business --key 1234567
      headgate reconcile reread business --letters --reason dq_cassandra_timeout --dry-run
    """
    from headgate.config.settings import load_settings
    from headgate.reconcile.hasher.plan import Given
    from headgate.reconcile.hasher.publisher import ask_again

    if not keys and not letters:
        raise UsageError("no key is named", fix="name some by --key, or take those of --letters")
    settings = load_settings()
    plan = planned(settings, table, Given())
    wanted = {**(_of_letters(plan, reason) if letters else {}), **_judged(settings, table, keys)}
    if wanted and not dry_run:
        ask_again(plan, wanted)
    told = "would be read again" if dry_run else "asked for"
    console.data({"table": table, "keys": sorted(wanted), "asked": not dry_run and bool(wanted)})
    console.say(f"{len(wanted):,} key{'' if len(wanted) == 1 else 's'} {told}")


def _judged(settings: Settings, table: str, keys: tuple[str, ...]) -> dict[str, datetime | None]:
    """Keys at the newest version of either side: an answer that is older would change nothing."""
    from headgate.reconcile.results import current_verdicts

    try:
        found = current_verdicts(settings, table, (), keys) if keys else []
    except HeadgateError as error:
        console.say(f"what was judged of these keys cannot be read: {error.one_line}")
        found = []
    sides = {each.pk: (each.onprem_version, each.cloud_version) for each in found}
    return {key: max(filter(None, sides.get(key, ())), default=None) for key in keys}


def _of_letters(plan: HasherPlan, reason: str | None) -> dict[str, datetime | None]:
    from headgate.reconcile.hasher.publisher import cloud_letters, keys_of

    return keys_of(each for each in cloud_letters(plan) if reason in (None, each.reason_code))


@click.command()
@click.argument("table")
@click.option("--once", is_flag=True, help="Stop at the topic's end.")
@click.option("--group", metavar="NAME", help="Consumer group; default audit-TABLE.")
def reconcile_audit(table: str, once: bool, group: str | None) -> None:
    """Write each change of a verdict that the audit topic tells into the declared Cassandra table.

    The table is `audit: {cassandra: keyspace.table}` of the rule set, made if it is absent; its keyspace
    must be there. A change that is told twice is written once; those of other pairs on the topic are left out.
    While Cassandra is away it waits and then goes on; SIGTERM and Ctrl-C end it cleanly.

    \b
    Examples:
      headgate reconcile audit business
      headgate reconcile audit business --once
    """
    from headgate.config.settings import load_settings
    from headgate.core.kafka.topics import bootstrap_of
    from headgate.core.runtime.journal import interruption
    from headgate.reconcile.cassandra.audit import copy_audit
    from headgate.reconcile.cassandra.session import open_session
    from headgate.reconcile.cli.verdicts import declared_pair

    settings = load_settings()
    declared = declared_pair(settings, table).reconcile
    audit = declared.audit if declared else None
    if audit is None or audit.topic is None or audit.cassandra is None:
        raise UsageError(
            f"the audit of `{table}` does not go to Cassandra",
            why="its section has no `audit.cassandra`, or no `audit.topic`",
            fix="write for example `audit: {cassandra: dq.audit}`",
        )
    bootstrap = bootstrap_of(settings)
    with open_session(settings) as cassandra, interruption() as stopped:
        copied = copy_audit(
            cassandra,
            bootstrap,
            audit.topic,
            audit.cassandra,
            group or f"audit-{table}",
            pair=table,
            once=once,
            stopped=stopped,
            say=console.say,
        )
    ended = "; stopped" if copied.stopped else ""
    console.data(copied, text=f"{copied.written:,} changes are in {copied.table}{ended}")
