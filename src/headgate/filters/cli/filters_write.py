"""`headgate filters` create, update, delete."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from headgate.filters.cli.client import (
    SHORT,
    asked,
    described,
    moment,
    read_document,
    table,
)
from headgate.terminal.cli_console import console, printable

if TYPE_CHECKING:
    from headgate.filters.api.api_client import Client
    from headgate.filters.spec import Filter

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
@click.option("--if-match", help="The tag that you read; a change that came in between is refused.")
@click.option("--yes", is_flag=True, help="Replace the version of now, whoever wrote it.")
def update(file: Path, if_match: str | None, yes: bool) -> None:
    """Submit a changed file as a new version. What is live goes on until the new one is deployed.

    Nobody's work is replaced unseen. A file that names its `version` must be made from the newest one.
    Otherwise you are shown whose version it replaces, and asked; where nobody can be asked it takes
    --if-match (`filters get` prints the tag) or --yes.

    \b
    Examples:
      headgate filters get service-by-dealer-001 --document > changed.json
      headgate filters update changed.json
      headgate filters update schemas/v1/filters/service-by-dealer-001.json --yes
    """
    from headgate.filters.loader import load_filter

    document, declared = read_document(file), load_filter(file)
    with asked() as client:
        tag = if_match or _seen_tag(client, declared, file, yes)
        made = client.update(declared.id, document, tag)
    console.data(made, text=described(made))
    console.done(f"version {made.version} of {declared.id} is {made.status}")


def _seen_tag(client: Client, declared: Filter, file: Path, yes: bool) -> str:
    """The state of now, once it is certain that the file was made from it, or may replace it."""
    from headgate.errors import StaleError
    from headgate.terminal.asking import confirm

    now = client.get(declared.id)
    if declared.version not in (None, now.version):
        raise StaleError(
            f"{file} was made from version {declared.version} of {declared.id}",
            why=f"version {now.version} by {printable(now.author)} has come since",
            fix=f"look at it: headgate filters diff {declared.id} {declared.version} {now.version}; "
            "then set `version` in the file, or take it out",
        )
    console.say(
        f"replaces version {now.version} by {printable(now.author)}, {moment(now.written_at)}"
    )
    confirm(
        f"Replace version {now.version} of {declared.id}?",
        yes=yes or declared.version is not None,
        otherwise="replacing a version needs --if-match, --yes, or `version` in the file",
    )
    return now.etag


@click.command()
@click.argument("id")
@click.option("--yes", is_flag=True, help="Do not ask.")
def delete(id: str, yes: bool) -> None:
    """Take a filter away. One that runs, or ran lately, waits for the approval of somebody else.

    \b
    Examples:
      headgate filters delete service-by-dealer-001
      headgate filters delete service-by-dealer-001 --yes
    """
    from headgate.terminal.asking import confirm

    confirm(f"Delete {id}?", yes=yes, otherwise="deleting a filter needs --yes")
    with asked() as client:
        left = client.delete(id, client.etag(id))
    if left is None:
        console.data({"id": id, "status": "deleted"}, text="")
        console.done(f"{id} is gone; its history stays")
        return
    console.data(left, text=described(left))
    console.done(
        f"{id} stays until somebody else approves that it goes: headgate filters approve {id}"
    )
