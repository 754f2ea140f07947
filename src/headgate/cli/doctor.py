"""`headgate doctor`: what this machine has and lacks."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from headgate.errors import SettingsError, UnavailableError
from headgate.terminal.cli_console import console

if TYPE_CHECKING:
    from headgate.config.settings import Settings


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
