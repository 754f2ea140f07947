"""`headgate hash`: one verb a module, loaded only when it is called."""

from __future__ import annotations

import click

from headgate.terminal.lazy_group import LazyCommands

VERBS: dict[str, tuple[str, str]] = {
    "check": ("every fault of the hash contracts at once", "headgate.cli.hash_check:hash_check"),
    "row": (
        "the hash of one row by a contract, and the text that is hashed",
        "headgate.cli.hash_row:hash_row",
    ),
    "sql": ("the Spark SQL that hashes the rows of a table", "headgate.cli.hash_sql:hash_sql"),
    "vectors": (
        "hold this implementation against the shared vectors",
        "headgate.cli.hash_vectors:hash_vectors",
    ),
}


@click.command(cls=LazyCommands, lazy=VERBS)
def group() -> None:
    """Turn rows into the same bytes on both sides, and into hashes that can be compared.

    \b
    Examples:
      headgate hash check
      headgate hash row contracts/business_table.hash.yml row.json --text
      headgate hash vectors
    """
