"""`headgate dlq list`: dead letters, newest first, without their content."""

from __future__ import annotations

import click

from headgate.dead_letters.dlq_choice import choosing, chosen
from headgate.terminal.cli_console import console

SHOWN = 50


@click.command()
@choosing
@click.option("--limit", type=click.IntRange(1, 10_000), default=SHOWN, show_default=True)
@click.option("--after", metavar="ID", help="Go on behind this one.")
@click.option("--waiting", is_flag=True, help="Only those that were not sent again.")
def dlq_list(
    job: str | None,
    reason: str | None,
    topic: str | None,
    since: str | None,
    until: str | None,
    limit: int,
    after: str | None,
    waiting: bool,
) -> None:
    """List dead letters of all jobs, the newest first.

    \b
    Examples:
      headgate dlq list
      headgate dlq list --job bronze-orders --since 2026-01-31T00:00Z
      headgate -o json dlq list --reason not_json --waiting
    """
    from headgate.config.settings import load_settings
    from headgate.dead_letters.masking import listed
    from headgate.dead_letters.redriving import open_redriving

    which = chosen(job, reason, topic, since, until)
    with open_redriving(load_settings()) as redriving:
        sent = redriving.redriven()
        found = redriving.letters.facts(which, limit + waiting * len(sent), after)
    rows = [listed(one, redriven=one.id in sent) for one in found]
    console.data([row for row in rows if not (waiting and row.redriven)][:limit])
