"""`headgate reconcile audit`: write the changes of verdicts on the audit topic into Cassandra."""

from __future__ import annotations

import click

from headgate.terminal.cli_console import console


@click.command()
@click.argument("table")
@click.option("--once", is_flag=True, help="Stop at the topic's end.")
@click.option("--group", metavar="NAME", help="Consumer group; default audit-TABLE.")
def reconcile_audit(table: str, once: bool, group: str | None) -> None:
    """Write each change of a verdict that the audit topic tells into the declared Cassandra table.

    The table is `audit: {cassandra: keyspace.table}` of the rule set, made if it is absent; its keyspace
    must be there. A change that is told twice is written once; those of other pairs on the topic are left out.
    While Cassandra is away it waits and then goes on; SIGTERM and Ctrl-C end it cleanly.

    \b
    Examples:
      headgate reconcile audit business
      headgate reconcile audit business --once
    """
    from headgate.config.settings import load_settings
    from headgate.core.kafka.engine_topics import bootstrap_of
    from headgate.core.runtime.interruption import interruption
    from headgate.errors import UsageError
    from headgate.reconcile.cassandra.audit import copy_audit
    from headgate.reconcile.cassandra.session import open_session
    from headgate.reconcile.cli.reconcile_pairs import declared_pair

    settings = load_settings()
    declared = declared_pair(settings, table).reconcile
    audit = declared.audit if declared else None
    if audit is None or audit.topic is None or audit.cassandra is None:
        raise UsageError(
            f"the audit of `{table}` does not go to Cassandra",
            why="its section has no `audit.cassandra`, or no `audit.topic`",
            fix="write for example `audit: {cassandra: dq.audit}`",
        )
    bootstrap = bootstrap_of(settings)
    with open_session(settings) as cassandra, interruption() as stopped:
        copied = copy_audit(
            cassandra,
            bootstrap,
            audit.topic,
            audit.cassandra,
            group or f"audit-{table}",
            pair=table,
            once=once,
            stopped=stopped,
            say=console.say,
        )
    ended = "; stopped" if copied.stopped else ""
    console.data(copied, text=f"{copied.written:,} changes are in {copied.table}{ended}")
