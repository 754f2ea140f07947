"""A noun whose verbs are modules of their own, so that help stays quick."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import click


class Verbs(click.Group):
    """Imports a verb's module only when that verb is called: the `command` of headgate.cli.<noun>_<verb>."""

    def __init__(self, *, noun: str, verbs: Mapping[str, str], **attributes: Any) -> None:
        super().__init__(**attributes)
        self._noun, self._verbs = noun, verbs

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self._verbs)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._verbs:
            return None
        return importlib.import_module(f"headgate.cli.{self._noun}_{cmd_name}").command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(verb, self._verbs[verb]) for verb in self.list_commands(ctx)])
