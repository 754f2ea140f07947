"""`headgate filters list`, `get`, `status`, `revisions`, `diff`, `ledger`, `watch`, `drift`: desired and observed state.

Only `drift --mend` changes something: it repairs git or the ops store, after a question.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from headgate.errors import DifferenceError, OperationError
from headgate.filters.cli.client import (
    SHORT,
    asked,
    described,
    document_of,
    moment,
    table,
)
from headgate.terminal.console import as_table, confirm, console, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headgate.filters.api.models import DriftOut, LedgerOut, MendOut, StatusOut


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


@click.command()
@click.argument("id", required=False)
@click.option(
    "--after", type=click.IntRange(0), help="Begin after this entry; else with what comes now."
)
@click.option("--for", "seconds", type=float, help="Stop after so many seconds.")
def filters_watch(id: str | None, after: int | None, seconds: float | None) -> None:
    """A line for everything that is done to filters, or to one; Ctrl-C ends it.

    With `-o json` every line is a JSON object.

    \b
    Examples:
      headgate filters watch
      headgate filters watch service-by-dealer-001 --after 0 --for 5
    """
    with asked() as client:
        for event in client.events(after, seconds):
            if id is not None and event.subject != id:
                continue
            if console.format == "json":
                click.echo(event.model_dump_json(by_alias=True))
            else:
                click.echo(
                    printable(
                        f"{event.seq} {moment(event.at)} {event.actor} {event.action} {event.subject}"
                    )
                )


SIDES = ("git", "store")


@click.command("drift")
@click.argument("ids", metavar="[ID]...", nargs=-1)
@click.option("--mend", type=click.Choice(SIDES), help="Change this side; the other one is right.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def filters_drift(ids: tuple[str, ...], mend: str | None, yes: bool) -> None:
    """Show filters on which git and the ops store disagree; exit code 5 if there are any.

    `--mend git` commits what was accepted here. `--mend store` submits what stands in git, where it
    waits for a second person as anything does. Each filter is mended on its own; those that cannot be
    are named with the reason, and the exit code is 1.

    \b
    Examples:
      headgate filters drift
      headgate filters drift --mend git --yes
      headgate filters drift service-by-dealer-001 --mend store
    """
    with asked() as client:
        found = [one for one in client.drift().drift if not ids or one.filter_id in ids]
        if mend is None or not found:
            console.data({"drift": found}, text=_table(found))
        else:
            console.say(_table(found))
            question = f"Mend {len(found)} filters in {'git' if mend == 'git' else 'the store'}?"
            confirm(question, yes=yes, otherwise="mending needs --yes here")
            mended = client.mend_drift(mend, [one.filter_id for one in found])
            console.data(mended, text="\n".join(mended.filters))
            console.done(f"{len(mended.filters)} mended, {len(mended.left)} still differ")
            _refuse_unless_all(mended)
            return
    if found:
        raise DifferenceError(
            f"git and the ops store disagree about {len(found)} filters",
            fix="headgate filters drift --mend git, or --mend store",
        )


def _refuse_unless_all(mended: MendOut) -> None:
    if mended.refused:
        reasons = "\n".join(f"{one.filter_id}: {one.why}" for one in mended.refused)
        raise OperationError(
            f"{len(mended.refused)} could not be mended",
            why=printable(reasons),
            fix="correct these files in git, or mend git: headgate filters drift <id> --mend git",
        )


def _table(found: Sequence[DriftOut]) -> str:
    if not found:
        return "git and the ops store agree"
    return as_table(
        [
            {
                "filter": one.filter_id,
                "kind": one.kind,
                "commit": (one.commit or "")[:12],
                "words": one.words,
            }
            for one in found
        ]
    )
