"""Renders a report: as one HTML page with inline SVG and no other file, as text for a terminal, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from headgate.quality.report.model import QualityReport, RuleLine, SampledRow
from headgate.quality.spec.rule_set import SEVERITIES
from headgate.terminal.report import (
    Canvas,
    adding_up,
    aligned,
    changed,
    named,
    number,
    page,
    parts_text,
    percent,
    whole_json,
)

WIDTH = 800
CANVAS = Canvas(WIDTH, height=160, gap=0.25, widest=80)
SPARK_WIDTH, SPARK_HEIGHT = 64, 16
_SPARK = Markup(
    '<svg class="spark" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
    'aria-label="{label}"><polyline points="{points}"></polyline></svg>'
)


@dataclass(frozen=True)
class Bar:
    """One bar: a part of `rows` for each severity, and what it stands for."""

    label: str
    rows: int
    parts: Mapping[str, int]

    @property
    def share(self) -> float:
        return sum(self.parts.values()) / self.rows if self.rows else 0.0


def scale(bars: Sequence[Bar]) -> float:
    """The share at the top of the plot: a round number not below the greatest."""
    most = max((bar.share for bar in bars), default=0.0)
    steps = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
    return next((step for step in steps if step >= most), 1.0)


def bars_svg(bars: Sequence[Bar], label: str) -> Markup:
    """The shares of failing rows, one stacked bar each, from edge to edge as the words below it."""
    top = scale(bars)
    return CANVAS.plot([_parts(bar, top) for bar in bars], label)


def _parts(bar: Bar, top: float) -> list[tuple[str, float, str]]:
    """Errors stand at the bottom, where they are easiest to compare."""
    found = ((severity, bar.parts.get(severity, 0)) for severity in SEVERITIES)
    return [
        (
            f"bar {severity.lower()}",
            n / bar.rows / top,
            f"{bar.label}: {n:,} of {bar.rows:,} rows {severity}",
        )
        for severity, n in found
        if n and bar.rows
    ]


def spark_svg(shares: Sequence[float], label: str) -> Markup:
    """A line as small as a word."""
    most = max(shares, default=0.0) or 1.0
    step = SPARK_WIDTH / max(len(shares) - 1, 1)
    points = " ".join(
        f"{number(at * step)},{number(1 + (SPARK_HEIGHT - 2) * (1 - value / most))}"
        for at, value in enumerate(shares)
    )
    return _SPARK.format(width=SPARK_WIDTH, height=SPARK_HEIGHT, label=label, points=points)


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


SCHEMA_VERSION = 1
MOST_RULES = 20
MOST_FAILING = 10


def report_json(report: QualityReport) -> bytes:
    return whole_json(report, SCHEMA_VERSION)


def report_text(report: QualityReport) -> str:
    return parts_text(
        _head(report), _rules(report), _verdicts(report), _windows(report), _sample(report)
    )


def _head(report: QualityReport) -> Iterator[str]:
    h = report.header
    yield f"{h.table}, run {h.run} ({h.mode}, {h.state}), revision {', '.join(h.revisions)}"
    yield f"{h.started_at or 'not started'} to {h.ended_at or 'now'}: {'; '.join(h.ranges)}"
    clean = percent(report.clean / report.judged if report.judged else 0)
    yield f"{report.judged:,} rows judged, {report.clean:,} clean ({clean}), " + ", ".join(
        f"{line.severity} {line.n:,}" for line in report.severities
    )
    outcomes = named(report.outcomes) or "nothing"
    yield from adding_up(report, f"{report.read:,} read = {outcomes}")
    yield from (f"! {note}" for note in report.notes)


def _rules(report: QualityReport) -> Iterator[str]:
    matched = [rule for rule in report.rules if rule.matched]
    rows = [("RULE", "SEVERITY", "ROWS", "SHARE", "MATCHED", "CHANGE", "MATCHES WHEN")]
    rows += [_rule(rule) for rule in matched[:MOST_RULES]]
    if matched:
        yield from aligned(rows)
    if len(matched) > MOST_RULES:
        yield f"… and {len(matched) - MOST_RULES:,} more rules that matched"
    silent = len(report.rules) - len(matched)
    if silent:
        yield f"{silent:,} rules matched no row"


def _rule(rule: RuleLine) -> tuple[str, ...]:
    counts = (f"{rule.n:,}", percent(rule.share), f"{rule.matched:,}", changed(rule.change))
    return (rule.name, rule.severity, *counts, rule.words)


def _verdicts(report: QualityReport) -> Iterator[str]:
    outside = [verdict for verdict in report.verdicts if not verdict.holds]
    if report.verdicts:
        yield f"{len(report.verdicts):,} verdicts of aggregates, {len(outside):,} outside their limits"
    for v in outside[:MOST_FAILING]:
        group = f" for {v.group}" if v.group else ""
        yield f"✗ {v.aggregate}: {v.words} is {v.value}{group}, not {v.limits} ({v.window})"


def _windows(report: QualityReport) -> Iterator[str]:
    windows = report.windows
    if windows.shown:
        yield f"{len(windows.shown) + windows.earlier:,} windows, {windows.late:,} with late rows"


def _sample(report: QualityReport) -> Iterator[str]:
    for row in report.sample.rows[:MOST_FAILING]:
        yield f"{row.status} {row.key}: {'; '.join(row.reasons)}"
    more = len(report.sample.rows) - MOST_FAILING
    if more > 0:
        yield f"… {more:,} more rows in the page and the JSON, of {report.sample.failing:,} that failed"
