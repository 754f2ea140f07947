"""`headgate reconcile`: one verb a module, loaded only when it is called."""

from __future__ import annotations

import importlib

import click

# Each verb is the `command` of headgate.cli.reconcile_<verb>.
VERBS: dict[str, str] = {
    "decisions": "the table by which a verdict is found",
    "history": "the story of one key",
    "repair": "send again what the cloud lacks or has wrong",
    "report": "what was found, as a page, JSON and text",
    "status": "keys by status, pending ones, objectives",
    "tables": "compare two tables, row by row or sum by sum",
    "why": "the columns in which the two sides of a key differ",
}


class Verbs(click.Group):
    """Imports a verb's module only when that verb is called, so that help stays quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        return importlib.import_module(f"headgate.cli.reconcile_{cmd_name}").command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(verb, VERBS[verb]) for verb in self.list_commands(ctx)])


@click.command(cls=Verbs)
def group() -> None:
    """Compare both sides of a rule table key by key.

    \b
    Examples:
      headgate job start reconcile-business
      headgate reconcile status business
      headgate reconcile history business 1234567
      headgate reconcile repair business --dry-run
    """
