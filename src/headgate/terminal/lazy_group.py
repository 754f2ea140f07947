"""Click groups that import a subcommand when it is called and suggest the nearest name for a misspelt one."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

import click

from headgate.app import load


class LazyCommands(click.Group):
    """A group whose commands are given as `name: (help, "module:attribute")` and imported when called."""

    SECTION = "Commands"

    def __init__(self, *, lazy: Mapping[str, tuple[str, str]], **attributes: Any) -> None:
        super().__init__(**attributes)
        self._lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self._lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._lazy:
            return None
        return load(self._lazy[cmd_name][1])

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

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section(self.SECTION):
            formatter.write_dl([(name, self._lazy[name][0]) for name in self.list_commands(ctx)])
