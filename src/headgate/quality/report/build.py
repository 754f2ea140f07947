"""Builds the report of a run from ledger rows, rule counts and windows. Pure: values in, one report out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from headgate.core.ledger.model import LedgerRow, RuleCount, Run
from headgate.core.ledger.ranges import SNAPSHOT, Range
from headgate.quality.compile.resolve import JudgedRule, JudgedTable, rule_words
from headgate.quality.job_kind import QualityRunOptions
from headgate.quality.report.model import (
    Header,
    Point,
    QualityReport,
    RuleLine,
    Sample,
    SeverityLine,
    StatusLine,
    Trend,
    VerdictLine,
    Windows,
)
from headgate.quality.spec.rule_set import SEVERITIES
from headgate.terminal.report import Sum

MOST = 6


def range_words(ranges: Sequence[Range]) -> tuple[str, ...]:
    """A line for each partition or table; beyond a few, how many more there are."""
    spans: dict[tuple[str, str], tuple[int, int]] = {}
    for range_ in ranges:
        for place, start, end in _spans(range_):
            first, last = spans.get(place, (start, end))
            spans[place] = (min(first, start), max(last, end))
    told = [_words(*place, *span) for place, span in spans.items()]
    more = len(told) - MOST
    return (*told[:MOST], f"and {more:,} partitions more") if more > 0 else tuple(told)


def source_names(ranges: Sequence[Range]) -> tuple[str, ...]:
    """The topics and tables that were read, as they are really called."""
    names = (range_.source.partition(":")[2] for range_ in ranges)
    return tuple(dict.fromkeys(filter(None, names)))


def _spans(range_: Range) -> Iterator[tuple[tuple[str, str], int, int]]:
    name = range_.source.partition(":")[2] or range_.source
    for part, end in range_.end.items():
        yield (name, part), range_.start.get(part, 0), end


def _words(source: str, part: str, start: int, end: int) -> str:
    if part == SNAPSHOT:
        return f"{source} at snapshot {end}"
    return f"{source}, partition {part}: offsets {start:,} to {end:,}"


# The outcomes of records that the rules judged; the others never became rows.
JUDGED = ("accepted", "dead_letter")
MOST_POINTS = 40


@dataclass(frozen=True)
class StatusCount:
    """Rows of the results table with one status."""

    status: str
    outcome: str
    severity: str | None
    rows: int


@dataclass(frozen=True)
class Evidence:
    """What is known of a run.

    `batches` are those of its job up to its end, oldest first; `counts` stand by ledger row, and so
    does how many rows each batch `judged`.
    """

    run: Run
    batches: tuple[LedgerRow, ...]
    counts: Mapping[int, tuple[RuleCount, ...]]
    statuses: tuple[StatusCount, ...]
    windows: Windows
    verdicts: tuple[VerdictLine, ...]
    sample: Sample
    notes: tuple[str, ...] = ()
    judged: Mapping[int, int] = field(default_factory=dict[int, int])

    @property
    def own(self) -> tuple[LedgerRow, ...]:
        return tuple(row for row in self.batches if row.run == self.run.number)


@dataclass
class _Tally:
    """Sums over some batches."""

    label: str
    at: datetime | None
    rows: int = 0
    n: dict[str, int] = field(default_factory=dict[str, int])
    matched: dict[str, int] = field(default_factory=dict[str, int])
    severities: dict[str, int] = field(default_factory=dict[str, int])

    def share(self, rule: str) -> float:
        return share(self.n.get(rule, 0), self.rows)


def share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def make_report(judged: JudgedTable, evidence: Evidence, made_at: datetime) -> QualityReport:
    """The report; the counts are the ledger's, the rest is held against them."""
    own = evidence.own
    mine = _tally(own, evidence, "this run")
    points = _points(evidence)
    rows = mine.rows
    outcomes = _outcomes(own)
    clean = rows - sum(mine.n.values())
    return QualityReport(
        header=_header(judged, evidence, made_at),
        read=sum(row.read for row in own),
        judged=rows,
        clean=clean,
        outcomes=outcomes,
        sums=_sums(own, mine, evidence.statuses),
        severities=_severities(judged.rules, mine),
        statuses=_statuses(evidence.statuses, rows),
        rules=rule_lines(judged.rules, mine, points),
        trend=Trend(_kind(evidence), tuple(_point(tally) for tally in points)),
        windows=evidence.windows,
        verdicts=evidence.verdicts,
        sample=evidence.sample,
        notes=(*evidence.notes, *_unknown(judged.rules, mine)),
    )


def judged_rows(row: LedgerRow, judged: Mapping[int, int]) -> int:
    """As the batch counted them; a ledger that was rebuilt knows the outcomes alone."""
    counted = judged.get(row.id or 0)
    return counted if counted is not None else sum(row.outcomes.get(name, 0) for name in JUDGED)


def rule_lines(
    rules: Sequence[JudgedRule], mine: _Tally, points: Sequence[_Tally]
) -> tuple[RuleLine, ...]:
    """The rules that count most come first; of equals, in the order that decides."""
    lines = [_line(rule, mine, points) for rule in rules]
    return tuple(sorted(lines, key=lambda line: (-line.n, -line.matched)))


def _line(rule: JudgedRule, mine: _Tally, points: Sequence[_Tally]) -> RuleLine:
    n = mine.n.get(rule.name, 0)
    return RuleLine(
        name=rule.name,
        words=rule_words(rule),
        reason=rule.reason,
        status=rule.status,
        metric=rule.metric,
        severity=rule.severity,
        on_fail=rule.on_fail,
        n=n,
        matched=mine.matched.get(rule.name, 0),
        share=share(n, mine.rows),
        change=_change(rule.name, points),
        shares=tuple(point.share(rule.name) for point in points),
    )


def _change(rule: str, points: Sequence[_Tally]) -> int | None:
    if len(points) < 2:
        return None
    before, last = (point.n.get(rule, 0) for point in points[-2:])
    return last - before


def _tally(batches: Sequence[LedgerRow], evidence: Evidence, label: str) -> _Tally:
    tally = _Tally(label, batches[-1].committed_at if batches else None)
    tally.rows = sum(judged_rows(row, evidence.judged) for row in batches)
    for count in (count for row in batches for count in evidence.counts.get(row.id or 0, ())):
        tally.n[count.rule] = tally.n.get(count.rule, 0) + count.n
        tally.matched[count.rule] = tally.matched.get(count.rule, 0) + count.matched
        tally.severities[count.severity] = tally.severities.get(count.severity, 0) + count.n
    return tally


def _kind(evidence: Evidence) -> str:
    """A stream is one long run: its batches are what changes; else runs are."""
    runs = {row.run for row in evidence.batches}
    return "batch" if evidence.run.mode == "streaming" or len(runs) < 2 else "run"


def _points(evidence: Evidence) -> list[_Tally]:
    groups: list[tuple[str, list[LedgerRow]]] = []
    for row in (row for row in evidence.batches if not row.is_accepted_gap):
        label = f"batch {row.batch_id}" if _kind(evidence) == "batch" else f"run {row.run}"
        same = bool(groups) and _kind(evidence) == "run" and groups[-1][0] == label
        if same:
            groups[-1][1].append(row)
        else:
            groups.append((label, [row]))
    return [_tally(rows, evidence, label) for label, rows in groups[-MOST_POINTS:]]


def _point(tally: _Tally) -> Point:
    by_severity = {name: tally.severities.get(name, 0) for name in SEVERITIES}
    return Point(tally.label, moment(tally.at), tally.rows, by_severity)


def _outcomes(rows: Iterable[LedgerRow]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for row in rows:
        for name, n in row.outcomes.items():
            sums[name] = sums.get(name, 0) + n
    return sums


def _sums(
    own: Sequence[LedgerRow], mine: _Tally, statuses: Sequence[StatusCount]
) -> tuple[Sum, ...]:
    outcomes = sum(sum(row.outcomes.values()) for row in own)
    sums = [Sum("records read = records with an outcome", sum(r.read for r in own), outcomes)]
    if not statuses and mine.rows:
        return tuple(sums)
    in_table = sum(status.rows for status in statuses)
    sums.append(Sum("rows judged = rows in the results table", mine.rows, in_table))
    for severity in SEVERITIES:
        told = sum(status.rows for status in statuses if status.severity == severity)
        words = f"{severity}: rows counted by rules = rows in the results table"
        sums.append(Sum(words, mine.severities.get(severity, 0), told))
    return tuple(sums)


def _severities(rules: Sequence[JudgedRule], mine: _Tally) -> tuple[SeverityLine, ...]:
    return tuple(
        SeverityLine(
            severity,
            sum(rule.severity == severity for rule in rules),
            mine.severities.get(severity, 0),
            share(mine.severities.get(severity, 0), mine.rows),
        )
        for severity in SEVERITIES
    )


def _statuses(found: Iterable[StatusCount], rows: int) -> tuple[StatusLine, ...]:
    ordered = sorted(found, key=lambda s: (-s.rows, s.status))
    return tuple(
        StatusLine(s.status, s.outcome, s.severity, s.rows, share(s.rows, rows)) for s in ordered
    )


def _unknown(rules: Sequence[JudgedRule], mine: _Tally) -> list[str]:
    """Rules that counted under the revision of the run and are no longer declared."""
    known = {rule.name for rule in rules}
    return [
        f"{n:,} rows got their status from the rule {name}, which is no longer declared"
        for name, n in mine.n.items()
        if name not in known and n
    ]


def _header(judged: JudgedTable, evidence: Evidence, made_at: datetime) -> Header:
    run, own = evidence.run, evidence.own
    revisions = dict.fromkeys(revision[:12] for row in own for revision in row.revisions)
    return Header(
        table=judged.table.name,
        job=run.job,
        run=run.number,
        mode=run.mode,
        state=str(run.state),
        revisions=tuple(revisions) or (run.revision[:12],),
        sources=_sources(judged, evidence),
        ranges=range_words([row.range for row in own]),
        batches=len(own),
        started_at=moment(run.started_at),
        ended_at=moment(run.ended_at),
        made_at=moment(made_at),
    )


def _sources(judged: JudgedTable, evidence: Evidence) -> tuple[str, ...]:
    """By their real names: a declared one may be a placeholder, and a run may have read nothing."""
    topic = QualityRunOptions.of(evidence.run).topic
    if topic and not evidence.own:
        return (topic,)
    read = source_names([row.range for row in evidence.own or evidence.batches[-1:]])
    declared = (s.topic or s.iceberg or s.table for s in judged.table.sources.values())
    return read or tuple(declared)


def moment(at: datetime | None) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC" if at else ""
