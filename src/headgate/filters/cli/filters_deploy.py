"""`headgate filters` deploy, rollback, pause, resume: asked for at once, followed until done."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from headgate.errors import HeadgateError, OperationError, UnavailableError
from headgate.filters.cli.client import asked
from headgate.terminal.cli_console import Progress, console

if TYPE_CHECKING:
    from headgate.filters.api.api_client import Client
    from headgate.filters.api.api_models import DeploymentOut, OperationOut

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
