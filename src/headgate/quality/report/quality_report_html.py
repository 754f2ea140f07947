"""A report as one page: no file beside it, nothing fetched, readable in light and dark."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

from headgate.quality.report.model import QualityReport, RuleLine, SampledRow
from headgate.quality.report.quality_report_svg import Bar, bars_svg, scale, spark_svg
from headgate.terminal.report_page import page, percent
from headgate.terminal.report_text import changed


def report_html(report: QualityReport) -> str:
    """The page; every value in it is escaped by the template."""
    return page(
        Path(__file__).parent,
        "quality_report.html.j2",
        report=report,
        trend=_Plot([Bar(p.label, p.rows, p.by_severity) for p in report.trend.points]),
        windows=_Plot([Bar(w.start, w.rows, w.by_severity) for w in report.windows.shown]),
        spark=_spark,
        changed=changed,
        breaking=_breaking,
        groups=_groups(report.sample.rows),
    )


def _breaking(name: str) -> Markup:
    """The name, which may go on in the next line behind each underscore."""
    return Markup("_<wbr>").join(name.split("_"))


def _groups(rows: Sequence[SampledRow]) -> dict[str, list[SampledRow]]:
    """By status, in the order of the rules that give them."""
    found: dict[str, list[SampledRow]] = {}
    for row in rows:
        found.setdefault(row.status, []).append(row)
    return found


class _Plot:
    """A plot and the words at its edges."""

    def __init__(self, bars: Sequence[Bar]) -> None:
        top = scale(bars)
        self.axis = (f"{100 * top:g}%", f"{50 * top:g}%", "0%")
        self.ends = (bars[0].label, bars[-1].label) if bars else ("", "")
        most = max(bars, key=lambda bar: bar.share, default=None)
        self.label = "No rows." if most is None else _summary(bars, most)
        self.svg = bars_svg(bars, self.label)


def _summary(bars: Sequence[Bar], most: Bar) -> str:
    return (
        f"Share of rows that failed, from {bars[0].label} to {bars[-1].label}: "
        f"most in {most.label} with {percent(most.share)}, last {percent(bars[-1].share)}."
    )


def _spark(line: RuleLine) -> Markup:
    if len(line.shares) < 2 or not any(line.shares):
        return Markup("")
    return spark_svg(line.shares, f"from {percent(line.shares[0])} to {percent(line.shares[-1])}")
