"""`headgate reconcile letters`: rows of the cloud that could not be read or hashed."""

from __future__ import annotations

import click

from headgate.terminal.cli_console import console

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
    from headgate.reconcile.cli.reconcile_hasher import planned
    from headgate.reconcile.hasher.cloud_letters import cloud_letters
    from headgate.reconcile.hasher.plan import Given

    plan = planned(load_settings(), table, Given())
    found = [each for each in cloud_letters(plan) if reason in (None, each.reason_code)]
    console.data(found[::-1][:limit])
    if len(found) > limit:
        console.say(f"{len(found) - limit:,} older ones are not shown; --limit shows more")
