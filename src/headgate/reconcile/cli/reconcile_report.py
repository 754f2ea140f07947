"""`headgate reconcile report`: what was found of both sides, as a page, JSON and text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headgate.errors import DifferenceError, UsageError
from headgate.quality.cli.gate import FAIL_ON, LEVELS
from headgate.terminal.cli_console import console

if TYPE_CHECKING:
    from headgate.config.settings import Settings
    from headgate.quality.compile.model import JudgedTable
    from headgate.reconcile.differences import RowDifference
    from headgate.reconcile.report.gather import Why
    from headgate.reconcile.report.model import ReconcileReport
    from headgate.terminal.report_page import ReportFiles

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


def report_after_run(table: str, fail_on: str | None) -> None:
    """Write the report after a batch run; without `fail_on` the run is done without it too."""
    from headgate.errors import HeadgateError

    try:
        report, files = made(table, None, REPAIRS)
    except HeadgateError as error:
        if fail_on is not None:
            raise
        console.warn(f"there is no report of {table}: {error.what}")
        return
    console.say(f"report: {files.html}")
    if fail_on is not None:
        refuse_broken_statuses(report, fail_on)


def made(table: str, folder: Path | None, repairs: int) -> tuple[ReconcileReport, ReportFiles]:
    """The report of the table under the settings in force, and its files."""
    from headgate.config.settings import load_settings
    from headgate.core.ledger.ops_store import OpsStore
    from headgate.quality.compile.judge import open_rules
    from headgate.quality.revision import with_limits
    from headgate.reconcile.report.gather import Wanted, reconcile_report
    from headgate.reconcile.report.reconcile_report_files import KIND, last_report, write_report
    from headgate.terminal.report_page import report_folder

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
        from headgate.reconcile.differences_gather import open_rows

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
    from headgate.reconcile.report.reconcile_report_text import report_text

    return report_text(report)
