"""`headgate rules`: one verb a module, loaded only when it is called."""

from __future__ import annotations

import importlib

import click

# Each verb is the `command` of headgate.cli.rules_<verb>.
VERBS: dict[str, str] = {
    "check": "every fault of the rule sets at once",
    "compile": "the SQL that a rule set is run as",
    "deploy": "let the declared rules judge from the next batch on",
    "diff": "what two revisions say differently, and of which rows",
    "explain": "each rule in words, its SQL and its last counts",
    "list": "the tables that rule sets declare",
    "notebook": "a notebook over a table's results and metrics",
    "report": "what a run found, as a page, JSON and text",
    "suggest": "rules that the values of a file suggest",
    "test": "given rows against what must be said of them",
}


class Verbs(click.Group):
    """Imports a verb's module only when that verb is called, so that help stays quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        return importlib.import_module(f"headgate.cli.rules_{cmd_name}").command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(verb, VERBS[verb]) for verb in self.list_commands(ctx)])


@click.command(cls=Verbs)
def group() -> None:
    """Declare what must hold of rows, and see where it does not.

    \b
    Examples:
      headgate rules list
      headgate rules check
      headgate rules test
    """
