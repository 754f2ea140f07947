"""`headgate reconcile hasher`: look rows up in Cassandra, hash them, and send what was read."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import click

from headgate.errors import InterruptedByUserError
from headgate.terminal.cli_console import Progress, console

if TYPE_CHECKING:
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
    from headgate.core.kafka.engine_topics import bootstrap_of
    from headgate.quality.compile.judge import open_rules
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
