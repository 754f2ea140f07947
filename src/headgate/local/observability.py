"""Prometheus and Grafana in Docker, beside a running engine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from headgate.config.settings import Settings
from headgate.core.runtime.ports import choose_port
from headgate.errors import OperationError, UnavailableError

COMPOSE_FILE = Path("infra/observability.optional.yml")
PROMETHEUS_FILE = Path("infra/prometheus.yml")
TARGET = "localhost:9249"
UP_SECONDS = 600.0
PROMETHEUS, GRAFANA = "PROMETHEUS_PORT", "GRAFANA_PORT"
WANTED_PORTS = {PROMETHEUS: 9090, GRAFANA: 3000}
LOGIN = {
    "GRAFANA_ADMIN_USER": "grafana_admin_user",
    "GRAFANA_ADMIN_PASSWORD": "grafana_admin_password",
}


@dataclass(frozen=True)
class Screens:
    """Where the two answer."""

    grafana: str
    prometheus: str
    scrapes: str


def obs_up(settings: Settings) -> Screens:
    """Start both, with the dashboard as the home screen; what they scrape is where the engine is."""
    compose, login = _compose(settings), _login(settings)
    ports, target = _ports(settings), _target(settings)
    file = _scrape_file(settings, target)
    chosen = {**login, **ports, "PROMETHEUS_FILE": str(file)}
    _run(settings, [*compose, "--profile", "obs", "up", "-d"], chosen)
    return Screens(
        f"http://localhost:{ports[GRAFANA]}",
        f"http://localhost:{ports[PROMETHEUS]}",
        f"http://{target}/metrics",
    )


def obs_down(settings: Settings) -> None:
    """Stop both and forget what they kept; nothing else is touched."""
    # Compose asks for every variable of the file, even to stop what it started.
    unused = dict.fromkeys((*WANTED_PORTS, *LOGIN, "PROMETHEUS_FILE"), "0")
    _run(settings, [*_compose(settings), "--profile", "obs", "down", "--volumes"], unused)
    _folder(settings).joinpath("ports.json").unlink(missing_ok=True)


def _login(settings: Settings) -> dict[str, str]:
    return {name: settings.need(field) for name, field in LOGIN.items()}


def _ports(settings: Settings) -> dict[str, str]:
    """The documented ports or the next free ones; what already runs keeps its own."""
    kept = _folder(settings) / "ports.json"
    if kept.is_file():
        return json.loads(kept.read_text("utf-8"))
    found = {name: str(choose_port(port, name)) for name, port in WANTED_PORTS.items()}
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps(found), encoding="utf-8")
    return found


def _folder(settings: Settings) -> Path:
    return settings.home.absolute() / "obs"


def _target(settings: Settings) -> str:
    """host:port of the engine's metrics, or where they will be."""
    if settings.metrics_url:
        return settings.metrics_url.split("://")[-1].partition("/")[0]
    return f"localhost:{settings.metrics_port}"


def _scrape_file(settings: Settings, target: str) -> Path:
    text = (settings.root / PROMETHEUS_FILE).read_text("utf-8")
    file = _folder(settings) / "prometheus.yml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text.replace(TARGET, target), encoding="utf-8")
    return file


def _compose(settings: Settings) -> tuple[str, ...]:
    """The compose command that works here; without one, or without its daemon, it is said."""
    if shutil.which("docker") is None:
        raise _away("there is no docker command")
    _ask(settings, ("docker", "info"), "its daemon does not answer")
    plugin = ("docker", "compose")
    if not _works(settings, (*plugin, "version")):
        plugin = ("docker-compose",)
        _ask(settings, (*plugin, "version"), "there is no docker compose")
    project = f"{settings.compose_project_name}-obs"
    return (*plugin, "-p", project, "-f", str(settings.root / COMPOSE_FILE))


def _works(settings: Settings, command: Sequence[str]) -> bool:
    try:
        subprocess.run(command, capture_output=True, timeout=settings.docker_timeout, check=True)
    except (OSError, subprocess.SubprocessError):
        return False
    return True


def _ask(settings: Settings, command: Sequence[str], why: str) -> None:
    if not _works(settings, command):
        raise _away(why)


def _away(why: str) -> UnavailableError:
    return UnavailableError(
        "Docker is needed for Prometheus and Grafana, and it is away",
        why=why,
        fix="start Docker; or use a Prometheus of your own: prometheus --config.file="
        f"{PROMETHEUS_FILE}",
    )


def _run(settings: Settings, command: Sequence[str], chosen: Mapping[str, str]) -> None:
    """What compose says goes to stderr, where progress belongs."""
    environ = {**os.environ, **chosen}
    try:
        done = subprocess.run(
            command, env=environ, cwd=settings.root, stdout=2, timeout=UP_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise UnavailableError(f"compose took more than {UP_SECONDS:.0f} s") from None
    if done.returncode:
        raise OperationError(
            "compose failed", why=f"exit code {done.returncode}; its words stand above"
        )
