"""`headgate job lag`: how far a job is behind its topic, and how many dead letters there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from headgate.terminal.cli_console import as_table, console, plain
from headgate.terminal.project import open_store

if TYPE_CHECKING:
    from headgate.core.engine.lag import LagReport


@click.command("lag")
@click.argument("job", default="bronze")
def lag(job: str) -> None:
    """Show the lag per partition, in records and in seconds; exit 5 above DLQ_MAX dead letters.

    COMMITTED is where the next batch starts; SECONDS is the age of the oldest record that is not
    read yet. Works without an engine.

    \b
    Examples:
      headgate job lag
      headgate job lag bronze-orders
      headgate job lag reconcile-orders
      headgate job lag reconcile-business
      headgate -o json job lag
    """
    from headgate.core.engine.lag import refuse_too_many_letters
    from headgate.core.engine.lag import report as lag_report
    from headgate.core.engine.submit import split_job
    from headgate.errors import UsageError

    settings, store = open_store()
    kind, dataset = split_job(settings, job)
    if kind not in ("bronze", "quality", "reconcile", "router"):
        raise UsageError(f"{kind} reads no topic", fix=f"headgate job show {job} tells its lag")
    with store:
        found = lag_report(settings, store, dataset, kind)
    console.data(found, text=_text(found))
    refuse_too_many_letters(found)


def _text(found: LagReport) -> str:
    rows = [plain(partition) for partition in found.lag.partitions]
    return "\n".join(
        [
            f"{found.lag.job} on {found.lag.topic}: {found.lag.words}",
            as_table(rows),
            f"dead letters: {found.dead_letters:,} of at most {found.dlq_max:,}",
            f"consumer group {found.group}: {found.group_words}",
        ]
    )
