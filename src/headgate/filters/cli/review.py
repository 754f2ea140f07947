"""`headgate filters generate`, `validate`, `dry-run`, `approve`, `reject`: what a second person looks at and decides."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from headgate.filters.cli.client import SHORT, asked, conditions, described
from headgate.terminal.console import console, printable

if TYPE_CHECKING:
    from headgate.filters.api.client import Client
    from headgate.filters.api.models import FilterOut
    from headgate.filters.api.preview_models import PreviewOut

# A dry run reads many events; the rest is quick.
LONG = 120.0


@click.command()
@click.argument("id")
@click.option("--target", help="As this target is sent it; else where it runs, or the engine.")
def generate(id: str, target: str | None) -> None:
    """The SQL of the newest version: the sink and the insert.

    \b
    Examples:
      headgate filters generate service-by-dealer-001
      headgate filters generate service-by-dealer-001 --target confluent
    """
    from headgate.errors import DifferenceError

    with asked() as client:
        made = client.generate(id, target)
    console.data(made, text=made.sql)
    if not made.valid:
        raise DifferenceError(f"{id} generates no SQL", why="\n".join(made.validation_errors))


@click.command()
@click.argument("what")
@click.option(
    "--sql",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="SQL that must be the one we generate.",
)
def validate(what: str, sql: Path | None) -> None:
    """Whether a submitted filter is valid, or a file that nobody has submitted yet.

    \b
    Examples:
      headgate filters validate service-by-dealer-001
      headgate filters validate schemas/v1/filters/service-by-dealer-001.json
      headgate filters validate service-by-dealer-001 --sql build/sql/filters/service-by-dealer-001.sql
    """
    from headgate.errors import DifferenceError
    from headgate.filters.cli.client import read_document

    with asked() as client:
        if what.endswith(".json"):
            drafted = client.validate_document(read_document(Path(what)))
            console.data(drafted, text=drafted.sql or "")
            valid, errors = drafted.valid, [fault.detail for fault in drafted.errors]
            warnings = drafted.warnings
        else:
            found = client.validate(what, sql.read_text(encoding="utf-8") if sql else None)
            console.data(found, text="")
            valid, errors, warnings = found.valid, found.errors, found.warnings
    for warning in warnings:
        console.warn(warning)
    if not valid:
        raise DifferenceError(f"{what} is not valid", why="\n".join(errors))
    console.done(f"{what} is valid")


@click.command()
@click.argument("what")
@click.option(
    "--last", type=int, default=10_000, show_default=True, help="How many events are looked at."
)
@click.option("--samples", type=int, default=5, show_default=True, help="How many are shown.")
def dry_run(what: str, last: int, samples: int) -> None:
    """What a filter, or a file, would have matched of the last events, beside what runs now.

    Nothing is deployed and nothing is sent. Values of events are masked.

    \b
    Examples:
      headgate filters dry-run service-by-dealer-001
      headgate filters dry-run schemas/v1/filters/service-by-dealer-001.json --last 100000
    """
    from headgate.filters.cli.client import read_document

    with asked(seconds=LONG) as client:
        if what.endswith(".json"):
            found = client.dry_run_document(read_document(Path(what)), last, samples)
        else:
            found = client.dry_run(what, last, samples)
    console.data(found, text=printable(_preview(found)))
    if found.unread:
        console.warn(f"no event was looked at: {found.unread}")


def _preview(found: PreviewOut) -> str:
    lines = [
        f"{found.filter_id} over {found.events:,} events of {found.source}, in {found.seconds:.1f} s",
        f"  matched  {found.matched:,} (now {found.matched_before:,}): "
        f"{found.added:,} more, {found.removed:,} less, {found.kept:,} as before",
        f"  unfit    {found.refused:,} refused, {found.tombstones:,} tombstones",
    ]
    lines += [f"  remark   {one.words}" for one in found.remarks]
    lines += [
        f"  concerns {one.consumer} on {one.topic}: {one.added:,} more, {one.removed:,} less"
        for one in found.consumers
    ]
    for sign, samples in (("+", found.samples_added), ("-", found.samples_removed)):
        lines += [
            f"  {sign} {one.partition}/{one.offset} {one.columns} {one.header_data or {}}"
            for one in samples
        ]
    return "\n".join(lines)


@click.command()
@click.argument("id")
@click.option(
    "--revision", help="The revision that you looked at; else you are shown what it is now."
)
@click.option("--comment", default="", help="Kept with the approval.")
@click.option("--yes", is_flag=True, help="Approve what it is now, without being asked.")
def approve(id: str, revision: str | None, comment: str, yes: bool) -> None:
    """Say yes to one revision. Nobody approves what they wrote.

    \b
    Examples:
      headgate filters approve service-by-dealer-001
      headgate filters approve service-by-dealer-001 --yes --comment "agreed with the dealer"
    """
    from headgate.terminal.console import confirm

    with asked() as client:
        if revision is None:
            now = client.get(id)
            console.say(_to_judge(client, now))
            confirm(
                f"Approve revision {now.revision[:SHORT]} of {id}?",
                yes=yes,
                otherwise="approving without --revision needs --yes",
            )
            revision = now.revision
        made = client.approve(id, revision, comment)
    console.data(made, text="")
    console.done(f"{id} is {made.status}: revision {made.revision[:SHORT]}")


def _to_judge(client: Client, now: FilterOut) -> str:
    """What a second person says yes to: how it stands, and what it changes of what runs."""
    live, sql = now.deployed_version, printable(_sent(client, now.id))
    if live is None or live == now.version:
        return f"{described(now)}\n{conditions(now)}\n{sql}"
    changed = client.diff(now.id, live, now.version).text
    return f"{described(now)}\n{printable(changed) or '  the same as what runs'}\n{sql}"


def _sent(client: Client, id: str) -> str:
    """The text that the target is sent, and why other targets cannot run it."""
    made = client.generate(id)
    warnings = client.validate(id).warnings
    return "\n".join([f"  SQL for {made.target}", made.sql, *(f"  ! {one}" for one in warnings)])


@click.command()
@click.argument("id")
@click.option("--reason", required=True, help="Why not.")
def reject(id: str, reason: str) -> None:
    """Say no to the newest version, or to a deletion.

    \b
    Examples:
      headgate filters reject service-by-dealer-001 --reason "the dealer has moved"
    """
    with asked() as client:
        made = client.reject(id, reason)
    console.data(made, text="")
    console.done(f"{id} is {made.status}")
