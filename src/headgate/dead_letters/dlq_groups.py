"""`headgate dlq groups`: dead letters by job, reason and topic."""

from __future__ import annotations

import click

from headgate.dead_letters.dlq_choice import choosing, chosen
from headgate.terminal.cli_console import console


@click.command()
@choosing
def dlq_groups(
    job: str | None, reason: str | None, topic: str | None, since: str | None, until: str | None
) -> None:
    """Count dead letters by job, reason code and topic, with the newest one's words.

    \b
    Examples:
      headgate dlq groups
      headgate dlq groups --topic raw-event-headers
    """
    from headgate.config.settings import load_settings
    from headgate.dead_letters.redriving import open_redriving

    with open_redriving(load_settings()) as redriving:
        sent = list(redriving.redriven())
        found = redriving.letters.groups(chosen(job, reason, topic, since, until), sent)
    console.data(found)
