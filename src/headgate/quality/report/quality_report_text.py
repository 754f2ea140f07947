"""A report for a terminal and for scripts: text with the rules that matched, JSON with everything."""

from __future__ import annotations

from collections.abc import Iterator

from headgate.quality.report.model import QualityReport, RuleLine
from headgate.terminal.report_page import percent
from headgate.terminal.report_text import adding_up, changed, named, parts_text, whole_json
from headgate.terminal.text_columns import aligned

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
