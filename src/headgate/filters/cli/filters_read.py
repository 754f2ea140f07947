"""`headgate filters` list, get, status, revisions, diff, ledger: looking, changing nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from headgate.filters.cli.client import (
    SHORT,
    asked,
    described,
    document_of,
    moment,
    table,
)
from headgate.terminal.cli_console import as_table, console, printable

if TYPE_CHECKING:
    from headgate.filters.api.api_models import LedgerOut, StatusOut


@click.command("list")
@click.option("--status", help="Only those of this status.")
@click.option("--consumer", help="Only those of this consumer.")
@click.option("--words", help="Only those with these words in id or document.")
def list_filters(status: str | None, consumer: str | None, words: str | None) -> None:
    """The filters and how they stand.

    \b
    Examples:
      headgate filters list
      headgate filters list --status pending_approval
      headgate -o json filters list --consumer dealer-001-service-consumer
    """
    with asked() as client:
        found = list(client.list(status, consumer, words))
    console.data({"filters": found, "total": len(found)}, text=table(found))


@click.command()
@click.argument("id")
@click.option(
    "--document", is_flag=True, help="Print its document, to be changed and given to update."
)
def get(id: str, document: bool) -> None:
    """One filter: how it stands, and what can be done with it now.

    \b
    Examples:
      headgate filters get service-by-dealer-001
      headgate filters get service-by-dealer-001 --document > changed.json
      headgate -o json filters get service-by-dealer-001
    """
    import json

    with asked() as client:
        found = client.get(id)
    if document:
        made = document_of(found)
        console.data(made, text=json.dumps(made, indent=2))
    else:
        console.data(found, text=described(found))


@click.command()
@click.argument("id")
def status(id: str) -> None:
    """What is wanted and what the target does, with the offsets since which it does it.

    \b
    Examples:
      headgate filters status service-by-dealer-001
    """
    with asked() as client:
        found = client.status(id)
    console.data(found, text=printable(_status(found)))


@click.command()
@click.argument("id")
def revisions(id: str) -> None:
    """Every version of a filter, with who wrote it and who decided on it.

    \b
    Examples:
      headgate filters revisions service-by-dealer-001
    """
    with asked() as client:
        found = client.revisions(id)
    rows: list[dict[str, object]] = [
        {
            "version": one.version,
            "revision": one.revision[:SHORT],
            "author": one.author,
            "written": moment(one.written_at),
            "decided": ", ".join(f"{each.decision} by {each.by}" for each in one.decisions),
            "note": one.note,
        }
        for one in found.revisions
    ]
    console.data(found, text=as_table(rows))


@click.command()
@click.argument("id")
@click.argument("before", type=int, required=False)
@click.argument("after", type=int, required=False)
def diff(id: str, before: int | None, after: int | None) -> None:
    """What two versions say differently; without numbers, the newest and the one before.

    \b
    Examples:
      headgate filters diff service-by-dealer-001
      headgate filters diff service-by-dealer-001 1 3
    """
    with asked() as client:
        newest = after or client.get(id).version
        found = client.diff(id, before or max(newest - 1, 1), newest)
    console.data(found, text=printable(found.text.rstrip("\n")) or "(no difference)")


@click.command()
@click.argument("id")
def ledger(id: str) -> None:
    """Which revision judged which offsets of the source, and how many records it sent on.

    \b
    Examples:
      headgate filters ledger service-by-dealer-001
      headgate -o json filters ledger service-by-dealer-001
    """
    with asked() as client:
        found = client.ledger(id)
    console.data(found, text=_ledger(found))


def _status(found: StatusOut) -> str:
    wanted, seen = found.desired, found.observed
    lines = [
        f"{found.filter_id}: {found.status}",
        f"  wanted  {f'{wanted.revision[:SHORT]} to {wanted.topic}' if wanted else 'nothing'}",
        f"  seen    {f'{seen.state} {seen.revision[:SHORT]}' if seen else 'nothing'}",
    ]
    if found.cutover:
        since = ", ".join(f"{part}:{offset}" for part, offset in sorted(found.cutover.items()))
        lines.append(f"  since   {since}")
    if found.waiting_commits:
        why = found.git_trouble.replace(" | ", ": ") or "the next step makes it"
        lines.append(f"  git     {found.waiting_commits} to commit: {why}")
    trouble = found.deployment_error or found.reason
    return "\n".join([*lines, *([f"  trouble {trouble}"] if trouble else [])])


def _ledger(found: LedgerOut) -> str:
    rows: list[dict[str, object]] = [
        {
            "source": one.source,
            "partition": one.partition,
            "from": one.start,
            "until": one.end,
            "revision": one.revision[:SHORT],
            "job": one.job,
            "batches": one.batches,
        }
        for one in found.ranges
    ]
    return f"{as_table(rows)}\nsent {found.sent}, refused {found.refused}"
