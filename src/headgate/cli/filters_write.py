"""`headgate filters` create, update, delete."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from headgate.cli.console import console
from headgate.cli.filters_client import (
    SHORT,
    asked,
    described,
    moment,
    printable,
    read_document,
    table,
)

if TYPE_CHECKING:
    from headgate.api.client import Client

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.argument("files", nargs=-1, required=True, type=FILE)
def create(files: tuple[Path, ...]) -> None:
    """Submit new filters. Each waits for the approval of somebody else.

    \b
    Examples:
      headgate filters create schemas/v1/filters/service-by-dealer-001.json
      headgate filters create schemas/v1/filters/*.json
    """
    documents = [read_document(path) for path in files]
    with asked() as client:
        made = [client.create(document) for document in documents]
    console.data({"filters": made}, text=table(made))
    for one in made:
        console.done(f"{one.id} waits for approval of revision {one.revision[:SHORT]}")


@click.command()
@click.argument("file", type=FILE)
@click.option(
    "--if-match", help="The ETag that you read; a change that came in between is refused."
)
@click.option("--yes", is_flag=True, help="Replace the version of now without being asked.")
def update(file: Path, if_match: str | None, yes: bool) -> None:
    """Submit a changed file as a new version. What is live goes on until the new one is deployed.

    Without --if-match it replaces the version of now, which you are shown first.

    \b
    Examples:
      headgate filters update schemas/v1/filters/service-by-dealer-001.json
    """
    from headgate.spec.filter_loader import load_filter

    document, id = read_document(file), load_filter(file).id
    with asked() as client:
        made = client.update(id, document, if_match or _seen_etag(client, id, yes))
    console.data(made, text=described(made))
    console.done(f"version {made.version} of {id} is {made.status}")


def _seen_etag(client: Client, id: str, yes: bool) -> str:
    """The state of now, once somebody at a terminal has seen whose it is."""
    import sys

    etag, now = client.etag(id), client.get(id)
    console.say(
        f"replaces version {now.version} by {printable(now.author)}, {moment(now.updated_at)}"
    )
    if not yes and sys.stdin.isatty():
        from headgate.cli.asking import ask

        ask(f"Replace version {now.version} of {id}?")
    return etag


@click.command()
@click.argument("id")
@click.option("--yes", is_flag=True, help="Do not ask.")
def delete(id: str, yes: bool) -> None:
    """Take a filter away. One that runs is only marked: somebody else has to approve it.

    \b
    Examples:
      headgate filters delete service-by-dealer-001
      headgate filters delete service-by-dealer-001 --yes
    """
    from headgate.cli.asking import confirm

    confirm(f"Delete {id}?", yes=yes, otherwise="deleting a filter needs --yes")
    with asked() as client:
        left = client.delete(id, client.etag(id))
    if left is None:
        console.data({"id": id, "status": "deleted"}, text="")
        console.done(f"{id} is gone; its history stays")
        return
    console.data(left, text=described(left))
    console.done(
        f"{id} runs on until somebody else approves that it goes: headgate filters approve {id}"
    )


COMMANDS = {"create": create, "update": update, "delete": delete}
