"""`headgate reconcile`: status, history, report and repair of the keys of a reconciled pair.

`verdicts` reads what is known of keys, `report` shows what differs, `hasher` runs the services between Kafka and
Cassandra, `repair` sends rows again. Each verb is imported when it is called.
"""

from __future__ import annotations

import click

from headgate.terminal.lazy_group import LazyCommands

VERBS: dict[str, tuple[str, str]] = {
    "audit": (
        "copy changes of verdicts into Cassandra",
        "headgate.reconcile.cli.hasher:reconcile_audit",
    ),
    "decisions": (
        "the table by which a verdict is found",
        "headgate.reconcile.cli.verdicts:reconcile_decisions",
    ),
    "hasher": (
        "look rows up in Cassandra and send their hashes",
        "headgate.reconcile.cli.hasher:reconcile_hasher",
    ),
    "history": (
        "the story of one key",
        "headgate.reconcile.cli.verdicts:reconcile_history",
    ),
    "letters": (
        "rows of the cloud that could not be read or hashed",
        "headgate.reconcile.cli.hasher:reconcile_letters",
    ),
    "repair": (
        "send again what the cloud lacks or has wrong",
        "headgate.reconcile.cli.repair:reconcile_repair",
    ),
    "report": (
        "what was found, as a page, JSON and text",
        "headgate.reconcile.cli.report:reconcile_report",
    ),
    "reread": (
        "ask the hasher to read keys again",
        "headgate.reconcile.cli.hasher:reconcile_reread",
    ),
    "status": (
        "keys by status, pending ones, objectives",
        "headgate.reconcile.cli.verdicts:reconcile_status",
    ),
    "tables": (
        "compare two tables, row by row or sum by sum",
        "headgate.reconcile.cli.report:reconcile_tables",
    ),
    "why": (
        "the columns in which the two sides of a key differ",
        "headgate.reconcile.cli.verdicts:reconcile_why",
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
