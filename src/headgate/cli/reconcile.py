"""`headgate reconcile`: one verb a module, loaded only when it is called."""

from __future__ import annotations

import click

from headgate.cli.verbs import Verbs

# Each verb is the `command` of headgate.cli.reconcile_<verb>.
VERBS: dict[str, str] = {
    "audit": "copy changes of verdicts into Cassandra",
    "decisions": "the table by which a verdict is found",
    "hasher": "look rows up in Cassandra and send their hashes",
    "history": "the story of one key",
    "letters": "rows of the cloud that could not be read or hashed",
    "repair": "send again what the cloud lacks or has wrong",
    "report": "what was found, as a page, JSON and text",
    "reread": "ask the hasher to read keys again",
    "status": "keys by status, pending ones, objectives",
    "tables": "compare two tables, row by row or sum by sum",
    "why": "the columns in which the two sides of a key differ",
}


@click.command(cls=Verbs, noun="reconcile", verbs=VERBS)
def group() -> None:
    """Compare both sides of a rule table key by key.

    \b
    Examples:
      headgate job start reconcile-business
      headgate reconcile hasher business
      headgate reconcile status business
      headgate reconcile history business 1234567
      headgate reconcile repair business --dry-run
    """
