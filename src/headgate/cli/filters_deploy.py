"""`headgate filters` deploy, rollback, pause, resume: asked for at once, followed until done."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from headgate.cli.console import Progress, console
from headgate.cli.filters_client import asked

if TYPE_CHECKING:
    from headgate.api.client import Client
    from headgate.api.models import DeploymentOut, OperationOut

SECONDS = 60.0


def followed(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of a command that waits for an operation."""
    seconds = click.option(
        "--timeout", type=float, default=SECONDS, show_default=True, help="Seconds to wait."
    )
    return click.option("--no-wait", is_flag=True, help="Return at once.")(seconds(command))


@click.command()
@click.argument("id")
@click.option("--target", default="engine", show_default=True, help="Where it runs.")
@followed
def deploy(id: str, target: str, no_wait: bool, timeout: float) -> None:
    """Let the approved version run, from a batch boundary on; nothing is restarted.

    \b
    Examples:
      headgate filters deploy service-by-dealer-001
      headgate filters deploy service-by-dealer-001 --no-wait
    """
    with asked() as client:
        _follow(client, client.deploy(id, target), no_wait, timeout)


@click.command()
@click.argument("id")
@click.option(
    "--to", "to_version", type=int, help="The version; else the one that was live before."
)
@followed
def rollback(id: str, to_version: int | None, no_wait: bool, timeout: float) -> None:
    """Let a version run again that was live before. It was approved then: nobody is asked again.

    \b
    Examples:
      headgate filters rollback service-by-dealer-001
      headgate filters rollback service-by-dealer-001 --to 1
    """
    with asked() as client:
        _follow(client, client.rollback(id, to_version), no_wait, timeout)


@click.command()
@click.argument("id")
@followed
def pause(id: str, no_wait: bool, timeout: float) -> None:
    """Send nothing from the next batch on. To go on takes a new approval.

    \b
    Examples:
      headgate filters pause service-by-dealer-001
    """
    with asked() as client:
        _follow(client, client.pause(id), no_wait, timeout)


@click.command()
@click.argument("id")
@followed
def resume(id: str, no_wait: bool, timeout: float) -> None:
    """Go on where it stopped: what came meanwhile is judged too.

    \b
    Examples:
      headgate filters resume service-by-dealer-001
    """
    with asked() as client:
        _follow(client, client.resume(id), no_wait, timeout)


def _follow(client: Client, asked_for: DeploymentOut, no_wait: bool, seconds: float) -> None:
    """Wait with progress, print what became of it, and fail when it did."""
    from headgate.errors import OperationError, UnavailableError

    operation = asked_for.operation
    if not no_wait and not operation.state.ended:
        with console.progress(f"{operation.kind} of {operation.filter_id}") as progress:
            operation = client.wait(operation, seconds, lambda seen: _told(progress, seen))
    console.data(operation, text=f"{operation.filter_id} {operation.kind} {operation.state}")
    if operation.state == "succeeded":
        console.done(
            f"{operation.filter_id}: {operation.kind} of version {operation.version} is done"
        )
    elif operation.state == "running":
        if not no_wait:
            raise UnavailableError(
                f"{operation.kind} of {operation.filter_id} is not done after {seconds:g} s",
                why="the target has not said that it runs",
                fix=f"headgate filters status {operation.filter_id}",
            )
        console.say(f"{operation.filter_id}: operation {operation.id} is under way")
    else:
        raise OperationError(
            f"{operation.kind} of {operation.filter_id} {operation.state}",
            why=operation.error or "",
            fix=f"headgate filters status {operation.filter_id}",
        )


def _told(progress: Progress, operation: OperationOut) -> None:
    progress.update(
        progress.done + 1, f"{operation.kind} of {operation.filter_id} {operation.state}"
    )


COMMANDS = {"deploy": deploy, "rollback": rollback, "pause": pause, "resume": resume}
