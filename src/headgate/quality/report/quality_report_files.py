"""Where reports of quality runs are kept: a page and its JSON for each run."""

from __future__ import annotations

from pathlib import Path

from headgate.config.settings import Settings
from headgate.core.ledger.ops_store import OpsStore
from headgate.quality.report.model import QualityReport
from headgate.quality.report.quality_report_gather import Wanted, quality_report
from headgate.quality.report.quality_report_html import report_html
from headgate.quality.report.quality_report_text import report_json
from headgate.terminal.report_page import ReportFiles, report_folder, write_files

KIND = "rules"


def write_report(folder: Path, report: QualityReport) -> ReportFiles:
    """The two files of this run; a report of the same run takes their place."""
    return write_files(folder, f"run-{report.header.run}", report_html(report), report_json(report))


def make_and_write(
    settings: Settings, store: OpsStore, wanted: Wanted, folder: Path | None = None
) -> tuple[QualityReport, ReportFiles]:
    """The report of a run, written where reports are kept or into `folder`."""
    report = quality_report(settings, store, wanted)
    return report, write_report(folder or report_folder(settings, KIND, wanted.table), report)
