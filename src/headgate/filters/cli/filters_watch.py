"""`headgate filters watch`: what happens, as it happens."""

from __future__ import annotations

import click

from headgate.filters.cli.client import asked, moment
from headgate.terminal.cli_console import console, printable


@click.command()
@click.argument("id", required=False)
@click.option(
    "--after", type=click.IntRange(0), help="Begin after this entry; else with what comes now."
)
@click.option("--for", "seconds", type=float, help="Stop after so many seconds.")
def filters_watch(id: str | None, after: int | None, seconds: float | None) -> None:
    """A line for everything that is done to filters, or to one; Ctrl-C ends it.

    With `-o json` every line is a JSON object.

    \b
    Examples:
      headgate filters watch
      headgate filters watch service-by-dealer-001 --after 0 --for 5
    """
    with asked() as client:
        for event in client.events(after, seconds):
            if id is not None and event.subject != id:
                continue
            if console.format == "json":
                click.echo(event.model_dump_json(by_alias=True))
            else:
                click.echo(
                    printable(
                        f"{event.seq} {moment(event.at)} {event.actor} {event.action} {event.subject}"
                    )
                )
