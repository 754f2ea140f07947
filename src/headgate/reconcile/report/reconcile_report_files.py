"""Where reports of reconciliations are kept: a page and its JSON for each time one was asked for."""

from __future__ import annotations

import re
from pathlib import Path

from headgate.reconcile.report.model import ReconcileReport
from headgate.reconcile.report.reconcile_report_html import report_html
from headgate.reconcile.report.reconcile_report_text import report_json
from headgate.terminal.report_page import ReportFiles, write_files

KIND = "reconcile"


def last_report(folder: Path) -> Path | None:
    """The JSON of the newest report there: names begin with their time."""
    return max(folder.glob("[0-9]*.json"), default=None)


def write_report(folder: Path, report: ReconcileReport) -> ReportFiles:
    """The two files, named by the time of the report."""
    digits = re.sub(r"\D", "", report.header.made_at)
    name = f"{digits[:8]}T{digits[8:]}Z"
    return write_files(folder, name, report_html(report), report_json(report))
