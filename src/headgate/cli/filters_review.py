"""`headgate filters` generate, validate, approve, reject: what a second person looks at and says."""

from __future__ import annotations

from pathlib import Path

import click

from headgate.cli.console import console
from headgate.cli.filters_client import SHORT, asked, described


@click.command()
@click.argument("id")
def generate(id: str) -> None:
    """The SQL of the newest version: the sink and the insert.

    \b
    Examples:
      headgate filters generate service-by-dealer-001
    """
    from headgate.errors import DifferenceError

    with asked() as client:
        made = client.generate(id)
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
    from headgate.cli.filters_client import read_document
    from headgate.errors import DifferenceError

    with asked() as client:
        if what.endswith(".json"):
            drafted = client.validate_document(read_document(Path(what)))
            console.data(drafted, text=drafted.sql or "")
            valid, errors = drafted.valid, [fault.detail for fault in drafted.errors]
        else:
            found = client.validate(what, sql.read_text(encoding="utf-8") if sql else None)
            console.data(found, text="")
            valid, errors = found.valid, found.errors
    if not valid:
        raise DifferenceError(f"{what} is not valid", why="\n".join(errors))
    console.done(f"{what} is valid")


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
    from headgate.cli.asking import confirm

    with asked() as client:
        if revision is None:
            now = client.get(id)
            console.say(described(now))
            confirm(
                f"Approve revision {now.revision[:SHORT]} of {id}?",
                yes=yes,
                otherwise="approving without --revision needs --yes",
            )
            revision = now.revision
        made = client.approve(id, revision, comment)
    console.data(made, text="")
    console.done(f"{id} is {made.status}: revision {made.revision[:SHORT]}")


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


COMMANDS = {"generate": generate, "validate": validate, "approve": approve, "reject": reject}
