"""A report for a terminal and for scripts: text with the rules that held, JSON with everything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import orjson

from headgate.checks.quality_report import QualityReport, RuleLine
from headgate.checks.quality_report_html import change
from headgate.checks.report_page import percent

SCHEMA_VERSION = 1
MOST_RULES = 20
MOST_FAILING = 10


def report_json(report: QualityReport) -> bytes:
    """The whole report; `schema_version` tells a reader what to expect."""
    body = {"schema_version": SCHEMA_VERSION, "adds_up": report.adds_up, **_fields(report)}
    return orjson.dumps(body, option=orjson.OPT_INDENT_2)


def _fields(report: QualityReport) -> dict[str, object]:
    return {name: getattr(report, name) for name in report.__dataclass_fields__}


def report_text(report: QualityReport) -> str:
    parts = [_head(report), _rules(report), _verdicts(report), _windows(report), _sample(report)]
    return "\n\n".join(text for part in parts if (text := "\n".join(part)))


def _head(report: QualityReport) -> Iterator[str]:
    h = report.header
    yield f"{h.table}, run {h.run} ({h.mode}, {h.state}), revision {', '.join(h.revisions)}"
    yield f"{h.started_at or 'not started'} to {h.ended_at or 'now'}: {'; '.join(h.ranges)}"
    clean = percent(report.clean / report.judged if report.judged else 0)
    yield f"{report.judged:,} rows judged, {report.clean:,} clean ({clean}), " + ", ".join(
        f"{line.severity} {line.n:,}" for line in report.severities
    )
    outcomes = ", ".join(f"{n:,} {name}" for name, n in report.outcomes.items() if n)
    yield f"{'✓ adds up' if report.adds_up else '✗ does not add up'}: {report.read:,} read = {outcomes or 'nothing'}"
    yield from (f"✗ {s.words}: {s.left:,} ≠ {s.right:,}" for s in report.sums if not s.holds)
    yield from (f"! {note}" for note in report.notes)


def _rules(report: QualityReport) -> Iterator[str]:
    held = [rule for rule in report.rules if rule.held]
    rows = [("RULE", "SEVERITY", "ROWS", "SHARE", "HELD", "CHANGE", "HOLDS WHEN")]
    rows += [_rule(rule) for rule in held[:MOST_RULES]]
    if held:
        yield from _aligned(rows)
    if len(held) > MOST_RULES:
        yield f"… and {len(held) - MOST_RULES:,} more rules that held"
    silent = len(report.rules) - len(held)
    if silent:
        yield f"{silent:,} rules held on no row"


def _rule(rule: RuleLine) -> tuple[str, ...]:
    counts = (f"{rule.n:,}", percent(rule.share), f"{rule.held:,}", change(rule))
    return (rule.name, rule.severity, *counts, rule.words)


def _aligned(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]) - 1)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        yield "  ".join([*cells, row[-1]]).rstrip()


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
