"""`headgate hash`: one verb a module, loaded only when it is called."""

from __future__ import annotations

import click

from headgate.cli.verbs import Verbs

# Each verb is the `command` of headgate.cli.hash_<verb>.
VERBS: dict[str, str] = {
    "check": "every fault of the hash contracts at once",
    "row": "the hash of one row by a contract, and the text that is hashed",
    "sql": "the Spark SQL that hashes the rows of a table",
    "vectors": "hold this implementation against the shared vectors",
}


@click.command(cls=Verbs, noun="hash", verbs=VERBS)
def group() -> None:
    """Turn rows into the same bytes on both sides, and into hashes that can be compared.

    \b
    Examples:
      headgate hash check
      headgate hash row contracts/business_table.hash.yml row.json --text
      headgate hash vectors
    """
