"""Where reports of reconciliations are kept: a page and its JSON for each time one was asked for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from headgate.checks.reconcile_report import ReconcileReport
from headgate.checks.reconcile_report_html import report_html
from headgate.checks.reconcile_report_text import report_json
from headgate.settings import Settings

FOLDER = "build/reports/reconcile"
HOME = ".headgate"


@dataclass(frozen=True)
class ReportFiles:
    html: Path
    json: Path


def report_folder(settings: Settings, table: str) -> Path:
    """Below the project; a home elsewhere has data of its own, and keeps their reports itself."""
    own = settings.home == settings.root / HOME
    return (settings.root / FOLDER if own else settings.home / "reports") / table


def last_report(folder: Path) -> Path | None:
    """The JSON of the newest report there: names begin with their time."""
    return max(folder.glob("[0-9]*.json"), default=None)


def write_report(folder: Path, report: ReconcileReport) -> ReportFiles:
    """The two files, named by the time of the report."""
    folder.mkdir(parents=True, exist_ok=True)
    digits = re.sub(r"\D", "", report.header.made_at)
    name = f"{digits[:8]}T{digits[8:]}Z"
    files = ReportFiles(folder / f"{name}.html", folder / f"{name}.json")
    files.html.write_text(report_html(report), encoding="utf-8")
    files.json.write_bytes(report_json(report))
    return files
