"""A reconciliation's report as one page: no file beside it, nothing fetched, light and dark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from headgate.reconcile.decisions import ROLLUPS, statuses
from headgate.reconcile.report.make import rollup_of
from headgate.reconcile.report.model import Point, ReconcileReport
from headgate.reconcile.report.reconcile_report_svg import Stack, stacks_svg, top_of
from headgate.terminal.report_page import page

# Those that are valid have one colour; each other status has its own, and a rule's has the last.
COLOURS = tuple(f"c-s{number}" for number in range(1, 11))
WRONG = ("invalid", "missing")


def report_html(report: ReconcileReport) -> str:
    """The page; every value in it is escaped by the template."""
    colours = {line.status: colour_of(line.status) for line in report.statuses}
    wrong = {s: colour_of(s) for s in _seen(report.points) if rollup_of(s) in WRONG}
    return page(
        Path(__file__).parent,
        "reconcile_report.html.j2",
        "reconcile_report.css",
        report=report,
        colours=colours,
        columns=_seen(report.points),
        everything=_everything(report.points),
        wrong=_Plot([Stack(p.at, p.statuses) for p in report.points], wrong, "invalid or missing"),
    )


def colour_of(status: str) -> str:
    """The class that gives a status its colour, the same in every report."""
    if rollup_of(status) == "valid":
        return "c-valid"
    others = [name for name, known in statuses().items() if known.rollup != "valid"]
    at = others.index(status) if status in others else len(COLOURS) - 1
    return COLOURS[min(at, len(COLOURS) - 1)]


def _seen(points: Sequence[Point]) -> list[str]:
    """The statuses that any key ever had, in the table's order."""
    names = {name for point in points for name in point.statuses}
    known = [name for name in statuses() if name in names]
    return known + sorted(names - set(known))


def _everything(points: Sequence[Point]) -> _Plot:
    classes = {name: f"c-{name}" for name in ROLLUPS}
    return _Plot([Stack(point.at, point.rollups) for point in points], classes, "keys")


class _Plot:
    """A plot and the words at its edges."""

    def __init__(self, stacks: Sequence[Stack], classes: Mapping[str, str], what: str) -> None:
        drawn = [Stack(s.label, {n: s.parts.get(n, 0) for n in classes}) for s in stacks]
        self.classes = {n: c for n, c in classes.items() if any(s.parts[n] for s in drawn)}
        top = top_of(drawn)
        self.axis = (f"{top:,}", f"{top / 2:,.0f}" if top > 1 else "", "0")
        self.ends = (drawn[0].label, drawn[-1].label) if drawn else ("", "")
        self.svg = stacks_svg(drawn, self.classes, _summary(drawn, what))


def _summary(stacks: Sequence[Stack], what: str) -> str:
    if not stacks:
        return "No keys."
    last = ", ".join(f"{n:,} {name}" for name, n in stacks[-1].parts.items() if n) or "none"
    return f"Keys over time ({what}), from {stacks[0].label} to {stacks[-1].label}; last: {last}."
