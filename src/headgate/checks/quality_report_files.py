"""Where reports of quality runs are kept: a page and its JSON for each run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from headgate.checks.quality_report import QualityReport
from headgate.checks.quality_report_gather import Wanted, quality_report
from headgate.checks.quality_report_html import report_html
from headgate.checks.quality_report_text import report_json
from headgate.settings import Settings
from headgate.store.ops import OpsStore

FOLDER = "build/reports/rules"
HOME = ".headgate"


@dataclass(frozen=True)
class ReportFiles:
    html: Path
    json: Path


def report_folder(settings: Settings, table: str) -> Path:
    """Below the project; a home elsewhere has runs of its own, and keeps their reports itself."""
    own = settings.home == settings.root / HOME
    return (settings.root / FOLDER if own else settings.home / "reports") / table


def write_report(folder: Path, report: QualityReport) -> ReportFiles:
    """The two files of this run; a report of the same run takes their place."""
    folder.mkdir(parents=True, exist_ok=True)
    files = ReportFiles(*(folder / f"run-{report.header.run}.{end}" for end in ("html", "json")))
    files.html.write_text(report_html(report), encoding="utf-8")
    files.json.write_bytes(report_json(report))
    return files


def make_and_write(
    settings: Settings, store: OpsStore, wanted: Wanted, folder: Path | None = None
) -> tuple[QualityReport, ReportFiles]:
    """The report of a run, written where reports are kept or into `folder`."""
    report = quality_report(settings, store, wanted)
    return report, write_report(folder or report_folder(settings, wanted.table), report)
