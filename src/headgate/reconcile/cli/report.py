"""`headgate reconcile report|tables`: what differs between two sides, of a stream as a page, of two tables as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from headgate.errors import DifferenceError, HeadgateError, UsageError
from headgate.quality.cli.report import FAIL_ON, LEVELS
from headgate.terminal.console import console

if TYPE_CHECKING:
    from headgate.config.settings import Settings
    from headgate.core.ledger.model import Run
    from headgate.core.ledger.ops_store import OpsStore
    from headgate.quality.compile.resolve import JudgedTable
    from headgate.reconcile.report.gather import Why
    from headgate.reconcile.report.model import ReconcileReport
    from headgate.reconcile.row_diff import RowDifference
    from headgate.reconcile.table_compare.plan import Tolerance
    from headgate.terminal.report import ReportFiles


REPAIRS = 100


@dataclass(frozen=True)
class Written:
    """Where the report is, and what it says at a glance."""

    table: str
    html: str
    json: str
    keys: int
    rollups: Mapping[str, int]
    statuses: Mapping[str, int]
    kinds: Mapping[str, int]
    letters: Mapping[str, int]
    to_repair: int
    objective_met: bool
    adds_up: bool


@click.command("report")
@click.argument("table")
@click.option(
    "--out",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where to; default: build/reports/reconcile/TABLE.",
)
@click.option("--repairs", type=click.IntRange(0, 10_000), default=REPAIRS, show_default=True)
@click.option("--open", "shown", is_flag=True, help="Open the page in a browser.")
@click.option("--fail-on", type=click.Choice(LEVELS), help=FAIL_ON)
def reconcile_report(
    table: str, folder: Path | None, repairs: int, shown: bool, fail_on: str | None
) -> None:
    """Write what the reconciliation of a table has found so far.

    A page (HTML, in one file) and the same as JSON: keys by status over time, why hashes differ,
    what to send again, what waits, dead letters, and what changed since the report before in the
    same folder. Values of sensitive columns are masked. Exit code 5 when the counts do not add up,
    or when --fail-on says so.

    \b
    Examples:
      headgate reconcile report business
      headgate reconcile report business --out /tmp/reports --open
      headgate -o json reconcile report business
    """
    report, files = made(table, folder, repairs)
    console.data(written_of(report, files), text=_text(report))
    console.done(f"written: {files.html} and {files.json.name}")
    if shown:
        click.launch(files.html.resolve().as_uri())
    if not report.adds_up:
        wrong = [f"{s.words}: {s.left:,} and {s.right:,}" for s in report.sums if not s.holds]
        raise DifferenceError(
            f"the counts of {report.header.job} do not add up",
            why="\n".join(wrong),
            fix="headgate certify --all says which batch; a batch may be under way",
        )
    if fail_on is not None:
        refuse_broken_statuses(report, fail_on)


def refuse_broken_statuses(report: ReconcileReport, level: str) -> None:
    """Raise when a key has a status of this severity or above."""
    from headgate.reconcile.report.model import broken_statuses

    sentences = broken_statuses(report, "WARN" if level == "warn" else "ERROR")
    if sentences:
        table = report.header.table
        raise DifferenceError(
            f"keys of {table} have a status of severity {level} or above",
            why="\n".join(sentences),
            fix=f"headgate reconcile report {table} lists them",
        )


def report_after_run(_settings: Settings, _store: OpsStore, run: Run, fail_on: str | None) -> None:
    """Write the report after a batch run; without `fail_on` the run is done without it too."""
    try:
        report, files = made(run.subject, None, REPAIRS)
    except HeadgateError as error:
        if fail_on is not None:
            raise
        console.warn(f"there is no report of {run.subject}: {error.what}")
        return
    console.say(f"report: {files.html}")
    if fail_on is not None:
        refuse_broken_statuses(report, fail_on)


def made(table: str, folder: Path | None, repairs: int) -> tuple[ReconcileReport, ReportFiles]:
    """The report of the table under the settings in force, and its files."""
    from headgate.config.settings import load_settings
    from headgate.core.ledger.ops_store import OpsStore
    from headgate.quality.compile.resolve import open_rules
    from headgate.quality.revision import with_limits
    from headgate.reconcile.report.gather import Wanted, reconcile_report
    from headgate.reconcile.report.render import KIND, last_report, write_report
    from headgate.terminal.report import report_folder

    settings = load_settings()
    judged = with_limits(open_rules(settings, table), settings)
    reconcile = judged.table.reconcile
    if reconcile is None:
        raise UsageError(
            f"{table} is not reconciled",
            why="it has one source",
            fix=f"headgate rules report {table}",
        )
    where = folder or report_folder(settings, KIND, table)
    wanted = Wanted(judged, reconcile, last_report(where), why_of(settings, judged), repairs)
    with OpsStore.open(settings.ops_store_url) as store:
        report = reconcile_report(settings, store, wanted)
    return report, write_report(where, report)


def why_of(settings: Settings, judged: JudgedTable) -> Why | None:
    """What explains differences, where the rule set says how whole rows are read."""
    declared = judged.table.reconcile
    if declared is None or declared.rows.onprem is None or declared.rows.cloud is None:
        return None

    def why(keys: Sequence[str]) -> Sequence[RowDifference]:
        from headgate.reconcile.rows import open_rows

        with open_rows(settings, judged.table) as rows:
            return rows.why(keys)

    return why


def written_of(report: ReconcileReport, files: ReportFiles) -> Written:
    return Written(
        table=report.header.table,
        html=str(files.html),
        json=str(files.json),
        keys=report.keys,
        rollups={line.rollup: line.keys for line in report.rollups},
        statuses={line.status: line.keys for line in report.statuses},
        kinds={line.kind: line.keys for line in report.kinds.lines},
        letters={line.code: line.records for line in report.letters},
        to_repair=report.repair.keys,
        objective_met=report.objective.met,
        adds_up=report.adds_up,
    )


def _text(report: ReconcileReport) -> str:
    from headgate.reconcile.report.render import report_text

    return report_text(report)


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
    from headgate.reconcile.table_compare.plan import Asked, plan
    from headgate.reconcile.table_compare.results import tables_report, tables_text
    from headgate.reconcile.table_compare.run import Comparison, open_table, query_session
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
    found: dict[str, _T] = {}
    for text in given:
        name, sign, value = text.partition("=")
        if not (name and sign and value):
            raise UsageError(f"{option} {text} is not NAME=VALUE")
        found[name] = read(value)
    return found


def tolerance_of(text: str) -> Tolerance:
    """A number, or a length of time as 5 SECONDS."""
    from headgate.declarations.errors import Refusal
    from headgate.declarations.types import duration

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
