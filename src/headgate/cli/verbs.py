"""A noun whose verbs are modules of their own, so that help stays quick."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

import click


class LazyCommands(click.Group):
    """A group that imports commands when they are called; a misspelt one gets a suggestion."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        names = self.list_commands(ctx)
        near = get_close_matches(args[0], names, n=1) if args[0] not in names else []
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            if near:  # click itself knows only commands that are imported
                words = f"No such command '{args[0]}'. Did you mean '{near[0]}'?"
                raise click.UsageError(words, ctx=error.ctx) from None
            raise


class Verbs(LazyCommands):
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
