"""`headgate reconcile tables`: two tables compared, row by row."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, TypeVar

import click

from headgate.terminal.cli_console import console

if TYPE_CHECKING:
    from headgate.reconcile.table_compare.model import Tolerance

_T = TypeVar("_T")
SAMPLES = 10


@click.command()
@click.argument("left")
@click.argument("right")
@click.option("--key", "-k", multiple=True, help="A column of the key; give it again for more.")
@click.option("--ignore", multiple=True, help="A column that is not compared.")
@click.option("--rename", multiple=True, metavar="LEFT=RIGHT", help="The right table's name.")
@click.option(
    "--tolerance", multiple=True, metavar="COLUMN=0.01", help="How far apart; times: 5 SECONDS."
)
@click.option("--mask", multiple=True, help="A column whose values nobody may see.")
@click.option("--samples", type=click.IntRange(0, 1_000), default=SAMPLES, show_default=True)
@click.option("--sql", "show_sql", is_flag=True, help="Print the SQL and read no row.")
@click.option("--sums", is_flag=True, help="Compare sums of hashes first, fetch only what differs.")
def reconcile_tables(
    left: str,
    right: str,
    key: tuple[str, ...],
    ignore: tuple[str, ...],
    rename: tuple[str, ...],
    tolerance: tuple[str, ...],
    mask: tuple[str, ...],
    samples: int,
    show_sql: bool,
    sums: bool,
) -> None:
    """Compare two tables: LEFT is on-prem, RIGHT the cloud.

    Each is schema.table of the lake, or a path of Parquet files. All columns that both have are
    compared by value, NULL with NULL. Without --key the tables are two multisets of rows. Exit code
    5 says that they differ. The running engine does the work; without one, this command does.

    \b
    Examples:
      headgate reconcile tables onprem.orders cloud.orders --key order_id
      headgate reconcile tables old.parquet new.parquet -k id --ignore loaded_at
      headgate reconcile tables a.parquet b.parquet -k id --tolerance amount=0.01
      headgate reconcile tables a.parquet b.parquet
      headgate reconcile tables onprem.orders cloud.orders -k order_id --sql
    """
    from headgate.config.settings import load_settings
    from headgate.errors import DifferenceError
    from headgate.reconcile.table_compare.compare import Comparison
    from headgate.reconcile.table_compare.compare_plan import plan
    from headgate.reconcile.table_compare.compare_tables import open_table, query_session
    from headgate.reconcile.table_compare.differences_tables import tables_report, tables_text
    from headgate.reconcile.table_compare.model import Asked
    from headgate.reconcile.table_compare.sums_run import SumsComparison

    asked = Asked(
        key=key,
        ignored=frozenset(ignore),
        renamed=_pairs(rename, "--rename", str),
        tolerances=_pairs(tolerance, "--tolerance", tolerance_of),
        hidden=frozenset(mask),
    )
    with query_session(load_settings()) as session:
        planned = plan(open_table(session, left), open_table(session, right), asked)
        chosen = SumsComparison if sums else Comparison
        comparison = chosen(session, planned, samples)
        if show_sql:
            script = comparison.script()
            console.data({"sql": script}, text=script)
            return
        report = tables_report(comparison.run())
    console.data(report, text=tables_text(report))
    if not report.same:
        raise DifferenceError(
            f"{left} and {right} differ",
            why=", ".join(f"{n:,} {status}" for status, n in report.statuses.items() if n),
            fix="see the columns and samples above",
        )


def _pairs(given: tuple[str, ...], option: str, read: Callable[[str], _T]) -> dict[str, _T]:
    from headgate.errors import UsageError

    found: dict[str, _T] = {}
    for text in given:
        name, sign, value = text.partition("=")
        if not (name and sign and value):
            raise UsageError(f"{option} {text} is not NAME=VALUE")
        found[name] = read(value)
    return found


def tolerance_of(text: str) -> Tolerance:
    """A number, or a length of time as 5 SECONDS."""
    from headgate.declarations.durations import duration
    from headgate.declarations.refusal import Refusal
    from headgate.errors import UsageError

    try:
        number = Decimal(text)
    except InvalidOperation:
        try:
            return duration(text)
        except Refusal as refused:
            raise UsageError(refused.what, fix=f"Write a number, or: {refused.fix}") from refused
    if not number.is_finite() or number < 0:
        raise UsageError(f"a tolerance of {text} makes no sense", fix="give a number from 0 on")
    return number
