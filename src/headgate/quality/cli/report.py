"""`headgate rules report`: what a run of a quality job found; and `--fail-on`, which makes it a gate in CI."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headgate.terminal.console import console

if TYPE_CHECKING:
    from headgate.config.settings import Settings
    from headgate.core.ledger.model import Run
    from headgate.core.ledger.ops_store import OpsStore
    from headgate.quality.report.model import QualityReport


LEVELS = ("error", "warn")
FAIL_ON = "Exit 5 when a rule, or a verdict on a key, of this severity or above was found."


@dataclass(frozen=True)
class Written:
    """Where the report is, and what it says at a glance."""

    table: str
    run: int
    html: str
    json: str
    judged: int
    clean: int
    errors: int
    warnings: int
    infos: int
    adds_up: bool


@click.command()
@click.argument("table")
@click.option("--run", "number", type=int, default=None, help="Which run; default: the newest.")
@click.option(
    "--out",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=None,
    help="Where to; default: build/reports/rules/TABLE.",
)
@click.option("--seed", type=int, default=None, help="Draws other failing rows.")
@click.option("--rows", type=click.IntRange(0, 5_000), default=None, help="How many of them.")
@click.option("--fail-on", type=click.Choice(LEVELS), help=FAIL_ON)
def rules_report(
    table: str,
    number: int | None,
    folder: Path | None,
    seed: int | None,
    rows: int | None,
    fail_on: str | None,
) -> None:
    """Write the report of a run: counts, trend, windows and a sample of failing rows.

    A page (HTML, in one file) and the same as JSON. Values of sensitive columns are masked. Exit
    code 5 when the counts do not add up, or when --fail-on says so.

    \b
    Examples:
      headgate rules report payments
      headgate rules report payments --run 3 --out /tmp/reports
      headgate rules report payments --fail-on error
      headgate -o json rules report payments
    """
    from headgate.config.settings import load_settings
    from headgate.core.ledger.ops_store import OpsStore
    from headgate.errors import DifferenceError
    from headgate.quality.report.gather import SEED, Wanted, make_and_write
    from headgate.quality.report.page import report_text
    from headgate.quality.report.rows import MOST_ROWS
    from headgate.quality.spec.loader import find_table

    settings = load_settings()
    find_table(settings.root, table)
    wanted = Wanted(
        table, number, SEED if seed is None else seed, MOST_ROWS if rows is None else rows
    )
    with OpsStore.open(settings.ops_store_url) as store:
        report, files = make_and_write(settings, store, wanted, folder)
    counts = {line.severity: line.n for line in report.severities}
    written = Written(
        table,
        report.header.run,
        str(files.html),
        str(files.json),
        report.judged,
        report.clean,
        counts["ERROR"],
        counts["WARN"],
        counts["INFO"],
        report.adds_up,
    )
    console.data(written, text=report_text(report))
    console.done(f"written: {files.html} and {files.json.name}")
    if not report.adds_up:
        wrong = [f"{s.words}: {s.left:,} and {s.right:,}" for s in report.sums if not s.holds]
        raise DifferenceError(
            f"the counts of {report.header.job} run {report.header.run} do not add up",
            why="\n".join(wrong),
            fix="headgate certify --all says which batch; a run may still be going on",
        )
    if fail_on is not None:
        refuse_broken_rules(report, fail_on)


def refuse_broken_rules(report: QualityReport, level: str) -> None:
    """Raise when a rule or an aggregate of this severity or above was broken in the run."""
    from headgate.errors import DifferenceError
    from headgate.quality.report.model import broken_rules

    sentences = broken_rules(report, "WARN" if level == "warn" else "ERROR")
    if sentences:
        raise DifferenceError(
            f"{report.header.job} run {report.header.run} breaks rules of severity {level} or above",
            why="\n".join(sentences),
            fix=f"headgate rules report {report.header.table} shows the rows",
        )


def report_after_run(settings: Settings, store: OpsStore, run: Run, fail_on: str | None) -> None:
    """Write the report of a quality run; without `fail_on` the run is done without it too."""
    from headgate.errors import HeadgateError
    from headgate.quality.report.gather import Wanted, make_and_write

    try:
        report, files = make_and_write(settings, store, Wanted(run.subject, run.number))
    except HeadgateError as error:
        if fail_on is not None:
            raise
        console.warn(f"there is no report of {run.job} run {run.number}: {error.what}")
        return
    console.say(f"report: {files.html}")
    if fail_on is not None:
        refuse_broken_rules(report, fail_on)
