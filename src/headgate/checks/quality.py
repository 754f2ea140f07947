"""Holds what a feed planted against every place where it must be found again: exactly, or not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from headgate.feeds.rules.planted import Planted

Kind = Literal["status", "outcome", "rule", "metric", "total"]
TITLES: Mapping[Kind, str] = {
    "status": "rows by status",
    "outcome": "records by outcome",
    "rule": "rows on which the rule holds",
    "metric": "metrics",
    "total": "metrics by severity",
}
Counts = Mapping[str, int]


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
        "rule": _sum({r.rule: r.held for r in p.rules} for p in planted),
        "metric": _sum(p.metrics for p in planted),
        "total": _sum(p.severities for p in planted),
    }


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
    """The comparison as a person reads it: one block a kind, one column a place."""
    blocks = [_block(comparison, kind) for kind in TITLES]
    return "\n".join([comparison.table, *(block for block in blocks if block)])


def _block(comparison: Comparison, kind: Kind) -> str:
    lines = [line for line in comparison.lines if line.kind == kind]
    if not lines:
        return ""
    places = list(dict.fromkeys(place for line in lines for place in line.found))
    head = [TITLES[kind], "planted", *places]
    rows = [[line.name, f"{line.planted:,}", *_cells(line, places)] for line in lines]
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    marks = [" ", *("✓" if line.holds else "✗" for line in lines)]
    return "\n".join(
        f"  {mark} {row[0]:<{widths[0]}}" + "".join(_right(row, widths))
        for mark, row in zip(marks, (head, *rows), strict=True)
    )


def _cells(line: Line, places: Sequence[str]) -> list[str]:
    return [f"{line.found[place]:,}" if place in line.found else "" for place in places]


def _right(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    return [f"  {cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True)]
