"""`headgate obs`: Prometheus and Grafana beside a running pipeline."""

from __future__ import annotations

import click

from headgate.terminal.cli_console import console


@click.group()
def group() -> None:
    """Start and stop Prometheus and Grafana; they need Docker.

    \b
    Examples:
      headgate obs up
      headgate obs down
    """


@group.command()
def up() -> None:
    """Start both; the dashboard is Grafana's home screen. Exit code 8 without Docker."""
    from headgate.config.settings import load_settings
    from headgate.local.observability import obs_up

    settings = load_settings()
    screens = obs_up(settings)
    if not settings.metrics_url:
        console.warn("no engine runs yet: make up")
    console.done("up; the user and password are GRAFANA_ADMIN_USER and GRAFANA_ADMIN_PASSWORD")
    console.data(screens)


@group.command()
def down() -> None:
    """Stop both and forget what they kept; the pipeline goes on."""
    from headgate.config.settings import load_settings
    from headgate.local.observability import obs_down

    obs_down(load_settings())
    console.done("Prometheus and Grafana are gone; `headgate obs up` starts them afresh")
