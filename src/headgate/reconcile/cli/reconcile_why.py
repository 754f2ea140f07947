"""`headgate reconcile why`: the columns in which the two sides of a key differ."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from headgate.terminal.cli_console import console

if TYPE_CHECKING:
    from headgate.reconcile.differences import RowDifference


@click.command()
@click.argument("table")
@click.argument("keys", nargs=-1, required=True, metavar="PK...")
def reconcile_why(table: str, keys: tuple[str, ...]) -> None:
    """Read both rows of a key and tell the columns that differ, and how.

    The rows are read as they are now, from where `reconcile: rows:` of TABLE says. What counts as
    equal is the hash contract's to say. Sensitive values are masked. Exit code 5 says that some
    differ.

    \b
    Examples:
      headgate reconcile why business 1234567
      headgate -o json reconcile why business 1234567 1234568
    """
    from headgate.config.settings import load_settings
    from headgate.errors import DifferenceError
    from headgate.quality.compile.judge import open_rules
    from headgate.reconcile.differences import EQUAL, NOWHERE, count_kinds
    from headgate.reconcile.differences_gather import open_rows

    settings = load_settings()
    with open_rows(settings, open_rules(settings, table).table) as rows:
        found = rows.why(keys)
    kinds = count_kinds(found)
    text = "\n".join(line for row in found for line in lines(row))
    console.data({"keys": found, "kinds": kinds}, text=text)
    differing = [row.pk for row in found if row.found not in (EQUAL, NOWHERE)]
    if differing:
        words = ", ".join(f"{n} {kind}" for kind, n in kinds.items())
        raise DifferenceError(
            f"{len(differing)} of {len(found)} keys differ",
            why=words or "one side lacks the row",
            fix=f"headgate reconcile repair {table} --dry-run shows what would be sent again",
        )


def lines(row: RowDifference) -> Iterator[str]:
    """One key: what was found, and a line for each column that differs."""
    from headgate.reconcile.differences_shown import shown_key

    yield f"{shown_key(row.pk)}: {row.found}"
    for each in row.differences:
        values = f"{_value(each.onprem)} on-prem, {_value(each.cloud)} in the cloud"
        yield f"  {each.column}: {values} ({each.kind})"


def _value(value: str | None) -> str:
    return "NULL" if value is None else value
