"""`headgate local` and `headgate doctor`: start, stop and inspect the embedded services; examine this machine."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headgate.errors import SettingsError, UnavailableError, UsageError
from headgate.terminal.console import confirm, console

if TYPE_CHECKING:
    from headgate.config.settings import Settings
    from headgate.local.state import ServiceState


SERVICES = ("broker", "engine")
EXTRA = ("cassandra", "postgres", "registry", "connect", "cdc")
LOGS = (*SERVICES, *EXTRA, "supervisor")


@click.group()
def group() -> None:
    """Start and stop the embedded services.

    \b
    Examples:
      headgate local up
      headgate local up --with cassandra,connect
      headgate -o json local status
      headgate local down --remove-data --yes
    """


@group.command()
@click.option("--only", type=click.Choice((*SERVICES, *EXTRA)), help="Start this one alone.")
@click.option(
    "--with",
    "names",
    help="Start these too: cassandra, postgres, connect, registry, cdc. Default: LOCAL_SERVICES.",
)
@click.option("--timeout", default=120.0, show_default=True, help="Seconds until all are ready.")
def up(only: str | None, names: str | None, timeout: float) -> None:
    """Start what does not run yet, and wait until it is ready.

    `cdc` starts Cassandra with it. Its health port listens on all addresses of this machine.

    \b
    Examples:
      headgate local up
      headgate local up --with cassandra,connect
      headgate local up --with postgres,connect
      headgate local up --only broker --with cassandra
    """
    from headgate.config.settings import load_settings
    from headgate.local import stack as services

    settings, extra = load_settings(), _listed(names)
    if settings.broker != "embedded":
        console.say(f"BROKER is {settings.broker}: no embedded broker is started")
    state = services.up(settings, only=only, extra=extra, timeout=timeout, tell=console.say)
    console.done(f"up; addresses are in {settings.running_file}")
    found = state.services
    console.data([*_rows(found), *_metrics_row(found, load_settings().metrics_url)])


def _listed(text: str | None) -> tuple[str, ...] | None:
    """The services of a list with commas, in their order; a name that is none is refused."""
    if text is None:
        return None
    names = [name.strip() for name in text.split(",") if name.strip()]
    if wrong := [name for name in names if name not in EXTRA]:
        raise UsageError(
            f"there is no service {', '.join(wrong)}", fix=f"choose from {', '.join(EXTRA)}"
        )
    return tuple(name for name in EXTRA if name in names)


@group.command()
@click.option("--remove-data", is_flag=True, help="Also remove all embedded data.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--timeout", default=100.0, show_default=True, help="Seconds for a clean stop.")
def down(remove_data: bool, yes: bool, timeout: float) -> None:
    """Stop everything; data are kept unless you say otherwise.

    With --remove-data all embedded data go: what goes is listed, and you are asked first.

    \b
    Examples:
      headgate local down
      headgate local down --remove-data
    """
    from headgate.config.settings import load_settings
    from headgate.local import stack as services

    settings = load_settings()
    home = settings.home
    if remove_data:
        if not services.has_embedded_tables(settings):
            console.say(
                f"the tables are in {settings.shown('warehouse')}: they and the ledger stay"
            )
        _confirm_removal(home, services.embedded_data(settings), yes)
    ran = services.down(home, timeout)
    kept = "" if remove_data else f"; the data are kept in {home}"
    console.done(("stopped" if ran else "nothing was running") + kept)
    if remove_data:
        removed = services.remove_data(settings)
        console.done(f"removed {len(removed)} file(s) and folder(s) under {home}")


def _confirm_removal(home: Path, data: Sequence[Path], yes: bool) -> None:
    """List the embedded data and go on only after a yes; where there are none nobody is asked."""
    if not data:
        return
    console.say(f"this removes all embedded data under {home}:")
    for path in data:
        console.say(f"  {path.relative_to(home)}{'/' if path.is_dir() else ''}")
    confirm("Remove them?", yes=yes, otherwise="--remove-data needs --yes here")


@group.command()
def status() -> None:
    """Show each service: its state, address, process and restarts."""
    from headgate.config.settings import load_settings
    from headgate.local import stack as services

    settings = load_settings()
    found = services.status(settings)
    console.data([*_rows(found), *_metrics_row(found, settings.metrics_url)])


def _metrics_row(
    found: Sequence[ServiceState], address: str | None
) -> tuple[dict[str, object], ...]:
    """The engine also answers Prometheus, at an address of its own."""
    engine = [row for row in _rows(found) if row["service"] == "engine" and row["pid"]]
    return tuple({**row, "service": "metrics", "address": address} for row in engine if address)


def _rows(found: Sequence[ServiceState]) -> list[dict[str, object]]:
    from headgate.local.process import processes, resident

    running = processes()
    return [
        {
            "service": s.service,
            "state": str(s.state),
            "address": s.address,
            "pid": s.pid,
            "memory_mb": resident(s.pid, running) // 1_000_000 if s.pid in running else None,
            "restarts": s.restarts,
            "since": s.since.isoformat(timespec="seconds") if s.since else None,
            "words": s.why or None,
        }
        for s in found
    ]


@group.command()
def health() -> None:
    """Ask broker, engine, added services, storage and a REST catalog; exit code 8 when one is away.

    A broker or service of another stack that answers on the port of this one's own counts as away.
    """
    from headgate.config.settings import load_settings
    from headgate.local.health import away_error
    from headgate.local.health import health as ask

    settings = load_settings()
    answers = ask(settings)
    console.data(list(answers))
    if away := [answer for answer in answers if not answer.healthy]:
        raise away_error(settings, away)


@group.command()
@click.option("--service", type=click.Choice(LOGS), help="One log alone.")
@click.option("-n", "--lines", default=50, show_default=True, help="How many lines of each.")
@click.option("-f", "--follow", is_flag=True, help="Go on as they grow, until Ctrl-C.")
def logs(service: str | None, lines: int, follow: bool) -> None:
    """Show the end of the services' logs."""
    from headgate.config.settings import load_settings
    from headgate.local.state import LocalFiles

    files = LocalFiles(load_settings().home)
    names = [service] if service else [*LOGS]
    paths = {n: files.log(n) for n in names if files.log(n).is_file()}
    if not paths:
        raise UnavailableError(
            "there is no log yet", why=str(files.log(names[0])), fix="headgate local up"
        )
    for name, path in paths.items():
        if len(paths) > 1:
            console.say(f"==> {name}: {path}")
        for line in path.read_text(errors="replace").splitlines()[-lines:]:
            click.echo(line)
    if follow:
        _follow(paths)


def _follow(paths: dict[str, Path]) -> None:
    positions = {name: path.stat().st_size for name, path in paths.items()}
    while True:
        for name, path in paths.items():
            positions[name] = _print_from(name, path, positions[name], len(paths) > 1)
        time.sleep(0.2)


def _print_from(name: str, path: Path, position: int, named: bool) -> int:
    """Print what was added; a log that became shorter was rotated and is read from its start."""
    size = path.stat().st_size if path.is_file() else 0
    with path.open("rb") as stream:
        stream.seek(position if size >= position else 0)
        text = stream.read()
    whole, newline, _ = text.rpartition(b"\n")
    for line in whole.decode(errors="replace").splitlines():
        click.echo(f"{name}: {line}" if named else line)
    start = position if size >= position else 0
    return start + len(whole) + len(newline)


@click.command("doctor")
def doctor_command() -> None:
    """Look at Java, memory, disk, ports, jars and versions; say what to do about each.

    Nothing is fetched, started or written. Exit 8 when something needed is missing.

    \b
    Examples:
      headgate doctor
      headgate -o json doctor
    """
    from headgate.local.doctor import examine, text

    found = examine(_settings(), os.environ)
    console.data(found, text=text(found))
    if not found.healthy:
        raise UnavailableError("this machine lacks something", fix="see the arrows above")


def _settings() -> Settings:
    """Settings that are not valid must not keep the doctor from looking at the rest."""
    from headgate.config.settings import Settings, load_settings

    try:
        return load_settings(anywhere=True)
    except SettingsError as error:
        console.error(error)
        return Settings()
