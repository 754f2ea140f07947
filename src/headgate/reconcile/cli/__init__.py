"""`headgate reconcile`: one verb a module, loaded only when it is called."""

from __future__ import annotations

import click

from headgate.terminal.lazy_group import LazyCommands

VERBS: dict[str, tuple[str, str]] = {
    "audit": (
        "copy changes of verdicts into Cassandra",
        "headgate.reconcile.cli.reconcile_audit:reconcile_audit",
    ),
    "decisions": (
        "the table by which a verdict is found",
        "headgate.reconcile.cli.reconcile_decisions:reconcile_decisions",
    ),
    "hasher": (
        "look rows up in Cassandra and send their hashes",
        "headgate.reconcile.cli.reconcile_hasher:reconcile_hasher",
    ),
    "history": (
        "the story of one key",
        "headgate.reconcile.cli.reconcile_history:reconcile_history",
    ),
    "letters": (
        "rows of the cloud that could not be read or hashed",
        "headgate.reconcile.cli.reconcile_letters:reconcile_letters",
    ),
    "repair": (
        "send again what the cloud lacks or has wrong",
        "headgate.reconcile.cli.repair:reconcile_repair",
    ),
    "report": (
        "what was found, as a page, JSON and text",
        "headgate.reconcile.cli.reconcile_report:reconcile_report",
    ),
    "reread": (
        "ask the hasher to read keys again",
        "headgate.reconcile.cli.reconcile_reread:reconcile_reread",
    ),
    "status": (
        "keys by status, pending ones, objectives",
        "headgate.reconcile.cli.reconcile_status:reconcile_status",
    ),
    "tables": (
        "compare two tables, row by row or sum by sum",
        "headgate.reconcile.cli.reconcile_tables:reconcile_tables",
    ),
    "why": (
        "the columns in which the two sides of a key differ",
        "headgate.reconcile.cli.reconcile_why:reconcile_why",
    ),
}


@click.command(cls=LazyCommands, lazy=VERBS)
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
