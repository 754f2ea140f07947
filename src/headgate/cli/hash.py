"""`headgate hash`: one verb a module, loaded only when it is called."""

from __future__ import annotations

import importlib

import click

# Each verb is the `command` of headgate.cli.hash_<verb>.
VERBS: dict[str, str] = {
    "check": "every fault of the hash contracts at once",
    "row": "the hash of one row by a contract, and the text that is hashed",
    "sql": "the Spark SQL that hashes the rows of a table",
    "vectors": "hold this implementation against the shared vectors",
}


class Verbs(click.Group):
    """Imports a verb's module only when that verb is called, so that help stays quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        return importlib.import_module(f"headgate.cli.hash_{cmd_name}").command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(verb, VERBS[verb]) for verb in self.list_commands(ctx)])


@click.command(cls=Verbs)
def group() -> None:
    """Turn rows into the same bytes on both sides, and into hashes that can be compared.

    \b
    Examples:
      headgate hash check
      headgate hash row contracts/business_table.hash.yml row.json --text
      headgate hash vectors
    """
