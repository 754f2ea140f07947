"""`headgate connect`: build our plugins; list, watch, restart and delete connectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from headgate.cli.connect_deploy import deploy, open_connect, render
from headgate.errors import OperationError, UsageError
from headgate.terminal.asking import confirm
from headgate.terminal.cli_console import console

if TYPE_CHECKING:
    from headgate.core.kafka.connect_rest import ConnectorState

WAIT_SECONDS = 60.0


@click.group()
def group() -> None:
    """Build the Connect plugins; deploy and watch connectors.

    KAFKA_CONNECT_URL names the worker; `headgate local up --with connect` runs one.

    \b
    Examples:
      headgate connect deploy business
      headgate connect status
      headgate connect restart headgate-cloud-hash-source
    """


group.add_command(render)
group.add_command(deploy)


@group.command()
def build() -> None:
    """Compile the plugins, with javac or with a compiler that is fetched.

    A worker that runs already loads them when it is started again.
    """
    from headgate.config.settings import load_settings
    from headgate.core.runtime.build import build_plugins
    from headgate.local.embedded import PLUGIN_SOURCES

    built = build_plugins(load_settings().root / PLUGIN_SOURCES)
    plugins = sorted(path.name for path in built.folder.iterdir())
    console.done(f"{'compiled with' if built.fresh else 'compiled before, with'} {built.compiler}")
    result = {"folder": str(built.folder), "compiler": built.compiler, "plugins": plugins}
    console.data(result, text="\n".join(str(built.folder / name) for name in plugins))


@group.command()
def plugins() -> None:
    """Show the plugins that the worker has loaded."""
    found = open_connect().plugins()
    console.data([{"class": name, "kind": kind, "version": v} for name, kind, v in found])


@group.command("list")
def list_() -> None:
    """Show all connectors."""
    console.data([_row(state) for state in open_connect().states()])


@group.command()
@click.argument("name", required=False)
def status(name: str | None) -> None:
    """Show connectors with their tasks; exit code 1 when one of them has failed."""
    connect = open_connect()
    states = [_known(connect.state(name), name)] if name else list(connect.states())
    console.data([row for state in states for row in _tasks(state)])
    if failed := [state for state in states if state.failed]:
        raise OperationError(
            f"failed: {', '.join(state.name for state in failed)}",
            why="; ".join(state.why for state in failed),
            fix=f"headgate connect restart {failed[0].name}",
        )


def _known(state: ConnectorState | None, name: str) -> ConnectorState:
    if state is None:
        raise UsageError(f"there is no connector {name}", fix="headgate connect list")
    return state


def _row(state: ConnectorState) -> dict[str, object]:
    running = len(state.tasks) - len(state.not_running)
    return {
        "connector": state.name,
        "kind": state.kind,
        "state": state.state,
        "tasks": f"{running} of {len(state.tasks)} running",
        "words": state.why or None,
    }


def _tasks(state: ConnectorState) -> Sequence[dict[str, object]]:
    """A line for the connector, then one for each of its tasks."""
    from headgate.core.kafka.connect_rest import told

    parts = [(None, state), *((task.id, task) for task in state.tasks)]
    return [
        {
            "connector": state.name,
            "task": number,
            "state": part.state,
            "worker": part.worker,
            "words": told(part.trace) if part.trace else None,
        }
        for number, part in parts
    ]


@group.command()
@click.argument("name")
@click.option("--all", "everything", is_flag=True, help="All tasks, not only those that failed.")
@click.option("--timeout", default=WAIT_SECONDS, show_default=True, help="Seconds to wait.")
def restart(name: str, everything: bool, timeout: float) -> None:
    """Start what has failed of a connector again, and wait until it runs.

    \b
    Examples:
      headgate connect restart headgate-cloud-hash-source
      headgate connect restart headgate-cloud-hash-source --all
    """
    connect = open_connect()
    before = _known(connect.state(name), name)
    if not everything and not before.failed:
        console.done(f"{name}: nothing has failed")
    else:
        connect.restart(name, failed_only=not everything)
    console.data([_row(connect.wait_running(name, timeout))])


@group.command()
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
def delete(name: str, yes: bool) -> None:
    """Delete a connector; how far it had read stays on Connect's offsets topic."""
    connect = open_connect()
    _known(connect.state(name), name)
    confirm(f"Delete the connector {name}?", yes=yes, otherwise="deleting needs --yes here")
    connect.delete(name)
    console.done(f"{name}: deleted")
