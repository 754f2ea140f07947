"""`headgate filters drift`: where git and the ops store disagree, and mending it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from headgate.errors import DifferenceError, OperationError
from headgate.filters.cli.client import asked
from headgate.terminal.asking import confirm
from headgate.terminal.cli_console import as_table, console, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headgate.filters.api.api_models import DriftOut
    from headgate.filters.api.drift_models import MendOut

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
