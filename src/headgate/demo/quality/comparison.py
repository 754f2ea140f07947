"""Compares what a feed planted with what every place counted: equal, or the difference by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from headgate.core.metrics.windows import instant
from headgate.demo.quality.planting import Planted
from headgate.terminal.report import counted

Kind = Literal["status", "outcome", "counter", "rule", "metric", "total", "window"]
TITLES: Mapping[Kind, str] = {
    "status": "rows by status",
    "outcome": "records by outcome",
    "counter": "records counted beside that",
    "rule": "rows that each rule matches",
    "metric": "metrics",
    "total": "metrics by severity",
    "window": "rows by window",
}
Counts = Mapping[str, int]
PLACES = ("results", "ledger", "metrics view", "dq.metrics", "HTTP", "DogStatsD", "Prometheus")
ALL_WINDOWS = "all windows"
# More lines than that are shown as their sum, as long as every one of them holds.
FEW = 8


@dataclass(frozen=True)
class Found:
    """What one place says about one kind of count; what it does not name, it counts as 0."""

    place: str
    kind: Kind
    counts: Counts


@dataclass(frozen=True)
class Line:
    """One count: what was planted, and what each place says that knows of it."""

    kind: Kind
    name: str
    planted: int
    found: Counts

    @property
    def holds(self) -> bool:
        return all(n == self.planted for n in self.found.values())


@dataclass(frozen=True)
class Comparison:
    """All counts of one rule table."""

    table: str
    lines: tuple[Line, ...]

    @property
    def holds(self) -> bool:
        return all(line.holds for line in self.lines)

    @property
    def compared(self) -> int:
        return sum(len(line.found) for line in self.lines)


def compared(table: str, planted: Sequence[Planted], found: Iterable[Found]) -> Comparison:
    """Every planted count beside what was found; a count that nobody planted is a difference."""
    places = tuple(found)
    lines = [
        line
        for kind, counts in expected(planted).items()
        for line in _lines(kind, counts, [place for place in places if place.kind == kind])
    ]
    return Comparison(table, tuple(lines))


def expected(planted: Sequence[Planted]) -> dict[Kind, Counts]:
    """The sums over all feeds of a table."""
    return {
        "status": _sum(p.statuses for p in planted),
        "outcome": _sum(p.outcomes for p in planted),
        "counter": _sum(p.counters for p in planted),
        "rule": _sum({r.rule: r.matched for r in p.rules} for p in planted),
        "metric": _sum(p.metrics for p in planted),
        "total": _sum(p.severities for p in planted),
        "window": _sum(map(_windows, planted)),
    }


def _windows(planted: Planted) -> Counts:
    """Rows by window; keys of a pair are in the windows of their arrival, so only their sum is known."""
    if not planted.windows:
        return {ALL_WINDOWS: planted.results}
    return {instant(window.window_start): window.rows for window in planted.windows}


def _sum(counts: Iterable[Counts]) -> dict[str, int]:
    total: dict[str, int] = {}
    for one in counts:
        for name, n in one.items():
            total[name] = total.get(name, 0) + n
    return total


def _lines(kind: Kind, counts: Counts, places: Sequence[Found]) -> list[Line]:
    if not places:
        return []
    others = sorted({n for place in places for n, c in place.counts.items() if c} - set(counts))
    return [
        Line(
            kind,
            name,
            counts.get(name, 0),
            {place.place: place.counts.get(name, 0) for place in places},
        )
        for name in (*counts, *others)
    ]


def text(comparison: Comparison) -> str:
    """The comparison as a person reads it: one column a place, long lists that hold as their sum."""
    places = sorted({place for line in comparison.lines for place in line.found}, key=_place)
    rows = [[comparison.table, "planted", *places]]
    for kind, title in TITLES.items():
        lines = [line for line in comparison.lines if line.kind == kind]
        if lines:
            rows += [[f"  {title}"], *(_row(line, places) for line in shortened(lines))]
    return "\n".join(counted(rows))


def _place(name: str) -> tuple[int, str]:
    """Tables first, then the ledger, then what was sent."""
    return (PLACES.index(name) if name in PLACES else len(PLACES), name)


def shortened(lines: Sequence[Line]) -> list[Line]:
    """The lines themselves where they are few; else those that differ, and the sum of the others."""
    if len(lines) <= FEW:
        return list(lines)
    equal = [line for line in lines if line.holds]
    places = lines[0].found
    sums = {place: sum(line.found[place] for line in equal) for place in places}
    name = f"{len(equal)} together" if len(equal) < len(lines) else f"all {len(equal)} together"
    total = Line(lines[0].kind, name, sum(line.planted for line in equal), sums)
    return [total, *(line for line in lines if not line.holds)]


def _row(line: Line, places: Sequence[str]) -> list[str]:
    mark = "✓" if line.holds else "✗"
    found = (f"{line.found[place]:,}" if place in line.found else "" for place in places)
    return [f"  {mark} {line.name}", f"{line.planted:,}", *found]
