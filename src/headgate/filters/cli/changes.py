"""`headgate filters create`, `update`, `delete`, `deploy`, `rollback`, `pause`, `resume`.

The last four begin an operation and wait until it has ended, unless --no-wait is given.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from headgate.errors import HeadgateError, OperationError, UnavailableError
from headgate.filters.cli.client import (
    SHORT,
    asked,
    described,
    moment,
    read_document,
    table,
)
from headgate.terminal.console import Progress, console, printable

if TYPE_CHECKING:
    from headgate.filters.api.client import Client
    from headgate.filters.api.models import DeploymentOut, OperationOut
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
    from headgate.terminal.console import confirm

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
    from headgate.terminal.console import confirm

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


SECONDS = 60.0
Asked: TypeAlias = "Callable[[Client], DeploymentOut]"


def followed(ask: Callable[..., Asked]) -> Callable[..., None]:
    """A command that asks for an operation, and waits for its end unless told not to."""

    @wraps(ask)
    def command(no_wait: bool, timeout: float, **given: Any) -> None:
        with asked() as client:
            _follow(client, ask(**given)(client), no_wait, timeout)

    seconds = click.option(
        "--timeout", type=float, default=SECONDS, show_default=True, help="Seconds to wait."
    )
    return click.option("--no-wait", is_flag=True, help="Return at once.")(seconds(command))


@click.command()
@click.argument("id")
@click.option("--target", default="engine", show_default=True, help="Where it runs.")
@followed
def deploy(id: str, target: str) -> Asked:
    """Let the approved version run, from a batch boundary on; nothing is restarted.

    \b
    Examples:
      headgate filters deploy service-by-dealer-001
      headgate filters deploy service-by-dealer-001 --no-wait
    """
    return lambda client: client.deploy(id, target)


@click.command()
@click.argument("id")
@click.option(
    "--to", "to_version", type=int, help="The version; else the one that was live before."
)
@click.option(
    "--from",
    "running",
    type=int,
    help="The version that runs now; refused when another does. Else the one that runs is read.",
)
@followed
def rollback(id: str, to_version: int | None, running: int | None) -> Asked:
    """Let a version run again that was live before. It was approved then: nobody is asked again.

    A version that somebody rolled back from is no way back any more.

    \b
    Examples:
      headgate filters rollback service-by-dealer-001
      headgate filters rollback service-by-dealer-001 --from 3
      headgate filters rollback service-by-dealer-001 --to 1
    """

    def ask(client: Client) -> DeploymentOut:
        live = running or client.get(id).deployed_version
        console.say(f"{id}: rolling back from version {live or 'none'}")
        return client.rollback(id, to_version, live)

    return ask


@click.command()
@click.argument("id")
@followed
def pause(id: str) -> Asked:
    """Send nothing from the next batch on. To go on takes a new approval.

    \b
    Examples:
      headgate filters pause service-by-dealer-001
    """
    return lambda client: client.pause(id)


@click.command()
@click.argument("id")
@followed
def resume(id: str) -> Asked:
    """Go on where it stopped: what came meanwhile is judged too.

    \b
    Examples:
      headgate filters resume service-by-dealer-001
    """
    return lambda client: client.resume(id)


def _follow(client: Client, asked_for: DeploymentOut, no_wait: bool, seconds: float) -> None:
    """Wait with progress, print what became of it, and fail when it did."""
    operation = asked_for.operation
    named = f"{operation.kind} of {operation.filter_id}"
    if not no_wait and not operation.state.ended:
        with console.progress(named) as progress:
            operation = client.wait(operation, seconds, lambda seen: _told(progress, seen))
    console.data(operation, text=f"{operation.filter_id} {operation.kind} {operation.state}")
    if operation.state == "succeeded":
        console.done(
            f"{operation.filter_id}: {operation.kind} of version {operation.version} is done"
        )
    elif operation.state == "running" and no_wait:
        console.say(f"{operation.filter_id}: operation {operation.id} is under way")
    else:
        raise _undone(operation, named, seconds)


def _undone(operation: OperationOut, named: str, seconds: float) -> HeadgateError:
    fix = f"headgate filters status {operation.filter_id}"
    if operation.state == "running":
        why = "the target has not said that it runs"
        return UnavailableError(f"{named} is not done after {seconds:g} s", why=why, fix=fix)
    return OperationError(f"{named} {operation.state}", why=operation.error or "", fix=fix)


def _told(progress: Progress, operation: OperationOut) -> None:
    progress.update(
        progress.done + 1, f"{operation.kind} of {operation.filter_id} {operation.state}"
    )
