"""The data of a quality report: counts by rule, status and severity, windows, trend, sampled rows and sums."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from headgate.errors import count_of
from headgate.quality.spec.rule_set import SEVERITIES, Severity
from headgate.terminal.report import Sum

MASK = "***"


@dataclass(frozen=True)
class RuleLine:
    """One rule: what it says, and how often. `n` rows got their status from it; it matched `matched` rows.

    `shares` are those of the points of the trend, oldest first; `change` is how many more rows it was
    at the last point than at the one before.
    """

    name: str
    words: str
    reason: str
    status: str
    metric: str
    severity: Severity
    on_fail: str
    n: int
    matched: int
    share: float
    change: int | None = None
    shares: tuple[float, ...] = ()


@dataclass(frozen=True)
class SeverityLine:
    severity: Severity
    rules: int
    n: int
    share: float


@dataclass(frozen=True)
class StatusLine:
    """How many rows have this status, and what became of them."""

    status: str
    outcome: str
    severity: str | None
    rows: int
    share: float


@dataclass(frozen=True)
class Point:
    """An earlier run, or batch, or window: rows judged, and those of each severity."""

    label: str
    at: str
    rows: int
    by_severity: Mapping[str, int]

    @property
    def failed(self) -> int:
        return sum(self.by_severity.values())


@dataclass(frozen=True)
class Trend:
    """The points up to this run, oldest first; `of` says what each is."""

    of: str
    points: tuple[Point, ...] = ()


@dataclass(frozen=True)
class WindowLine:
    """A window that the run counted into, with all that was counted up to the run's end."""

    start: str
    rows: int
    by_severity: Mapping[str, int]
    late_rows: int

    @property
    def late(self) -> bool:
        return self.late_rows > 0


@dataclass(frozen=True)
class Windows:
    """The newest windows, and of the earlier ones how many there are."""

    shown: tuple[WindowLine, ...] = ()
    earlier: int = 0
    late: int = 0


@dataclass(frozen=True)
class VerdictLine:
    """One aggregate in one window and group, against its limits."""

    aggregate: str
    words: str
    window: str
    group: str
    value: str
    limits: str
    severity: str
    holds: bool


@dataclass(frozen=True)
class SampledRow:
    """A row that failed, with every reason in words; sensitive values are masked."""

    key: str
    status: str
    severity: str | None
    outcome: str
    rules: tuple[str, ...]
    reasons: tuple[str, ...]
    event_time: str
    origin: str
    row: Mapping[str, str]


@dataclass(frozen=True)
class Sample:
    """A bounded choice of failing rows: some of every kind, the same ones for the same seed."""

    seed: int
    limit: int
    failing: int
    rows: tuple[SampledRow, ...] = ()


@dataclass(frozen=True)
class Header:
    """What was judged, by what, when."""

    table: str
    job: str
    run: int
    mode: str
    state: str
    revisions: tuple[str, ...]
    sources: tuple[str, ...]
    ranges: tuple[str, ...]
    batches: int
    started_at: str
    ended_at: str
    made_at: str


@dataclass(frozen=True)
class QualityReport:
    """Everything that the report of a run says."""

    header: Header
    read: int
    judged: int
    clean: int
    outcomes: Mapping[str, int]
    sums: tuple[Sum, ...]
    severities: tuple[SeverityLine, ...]
    statuses: tuple[StatusLine, ...]
    rules: tuple[RuleLine, ...]
    trend: Trend
    windows: Windows
    verdicts: tuple[VerdictLine, ...]
    sample: Sample
    notes: tuple[str, ...] = ()

    @property
    def adds_up(self) -> bool:
        return all(one.holds for one in self.sums)

    @property
    def failed(self) -> int:
        return self.judged - self.clean


def broken_rules(report: QualityReport, level: Severity) -> tuple[str, ...]:
    """A line for each rule and aggregate of severity `level` or above that found something."""
    severities = SEVERITIES[: SEVERITIES.index(level) + 1]
    matched = [r for r in report.rules if r.matched and r.severity in severities]
    outside = [v for v in report.verdicts if not v.holds and v.severity in severities]
    windows = Counter((v.aggregate, v.severity) for v in outside)
    return (
        *(f"{r.severity} {r.name}: {count_of(r.matched, 'row')}" for r in matched),
        *(
            f"{severity} {name}: outside its limits {count_of(n, 'time')}"
            for (name, severity), n in windows.items()
        ),
    )
