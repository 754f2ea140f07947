"""The report of a reconciliation as text for a terminal, as JSON, and as one HTML page with inline plots; and its files.

Words stand beside a plot as text of the page, and all numbers in a table below it, for those who
cannot see it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import cast

import orjson
from markupsafe import Markup

from headgate.errors import count_of
from headgate.reconcile.decision_table import ROLLUPS, statuses
from headgate.reconcile.report.make import Before, rollup_of
from headgate.reconcile.report.model import SCHEMA_VERSION, Point, ReconcileReport
from headgate.terminal.report import (
    Canvas,
    ReportFiles,
    adding_up,
    aligned,
    changed,
    named,
    page,
    parts_text,
    percent,
    whole_json,
    write_files,
)

CANVAS = Canvas(width=800, height=180, gap=0.15, widest=60)
ROUND = (*range(1, 10), 10, 12, 15, 16, 18, 20, 22, 25, 30, 35, 40, 45, 50, 60, 70, 80, 90, 100)


@dataclass(frozen=True)
class Stack:
    """One bar: what stands on it, lowest first, and when."""

    label: str
    parts: Mapping[str, int]

    @property
    def total(self) -> int:
        return sum(self.parts.values())


def top_of(stacks: Sequence[Stack]) -> int:
    """A round number not below the highest bar."""
    most = max((stack.total for stack in stacks), default=0)
    unit = 10 ** max(len(str(most)) - 2, 0)
    return max(next(step * unit for step in ROUND if step * unit >= most), 1)


def stacks_svg(stacks: Sequence[Stack], classes: Mapping[str, str], label: str) -> Markup:
    """The bars from edge to edge; `classes` gives each part its colour and its place in the stack."""
    top = top_of(stacks)
    return CANVAS.plot([_parts(stack, classes, top) for stack in stacks], label)


def _parts(stack: Stack, classes: Mapping[str, str], top: int) -> list[tuple[str, float, str]]:
    found = ((part, name, stack.parts.get(part, 0)) for part, name in classes.items())
    return [
        (f"part {name}", n / top, f"{stack.label}: {n:,} {part}") for part, name, n in found if n
    ]


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


MOST_SHOWN = 10


def report_json(report: ReconcileReport) -> bytes:
    return whole_json(report, SCHEMA_VERSION)


def read_before(file: Path) -> Before | None:
    """What an earlier report says; None when it is not one that we can read."""
    try:
        data = cast("dict[str, object]", orjson.loads(file.read_bytes()))
        if data["schema_version"] != SCHEMA_VERSION:
            return None
        header = cast("Mapping[str, object]", data["header"])
        return Before(
            made_at=str(header["made_at"]),
            as_of=datetime.fromisoformat(str(header["as_of"])).isoformat(" "),
            file=file.name,
            statuses=_counts(data["statuses"], "status", "keys"),
            letters=_counts(data["letters"], "code", "records"),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _counts(lines: object, name: str, n: str) -> dict[str, int]:
    found = cast("Sequence[Mapping[str, object]]", lines)
    return {str(line[name]): int(str(line[n])) for line in found}


def report_text(report: ReconcileReport) -> str:
    return parts_text(
        _head(report), _statuses(report), _since(report), _kinds(report), _rest(report)
    )


def _head(report: ReconcileReport) -> Iterator[str]:
    h = report.header
    yield f"{h.table}: {' against '.join(h.sources)}, {h.state}, {count_of(h.batches, 'batch', 'batches')}"
    yield f"window {h.window}, grace {h.grace}; verdicts from {h.first_change} to {h.last_change}"
    rollups = ", ".join(f"{r.keys:,} {r.rollup} ({percent(r.share)})" for r in report.rollups)
    yield f"{report.keys:,} keys: {rollups}"
    yield from adding_up(report, named(report.outcomes) or "nothing read")
    o = report.objective
    yield (
        f"{'✓' if o.met else '✗'} {percent(o.share)} settled within window and grace, "
        f"goal {percent(o.target)}"
    )
    yield from (f"! {note}" for note in report.notes)


def _statuses(report: ReconcileReport) -> Iterator[str]:
    rows = [("STATUS", "KEYS", "SHARE", "CHANGE", "WHICH MEANS")]
    for line in report.statuses:
        counts = (f"{line.keys:,}", percent(line.share), changed(line.change))
        rows.append((line.status, *counts, line.reason))
    if report.statuses:
        yield from aligned(rows)


def _since(report: ReconcileReport) -> Iterator[str]:
    if report.since is None:
        return
    yield f"{report.since.keys:,} keys changed since {report.since.made_at}"
    for move in report.since.moves[:MOST_SHOWN]:
        yield f"  {move.before or '(new)'} → {move.after}: {move.keys:,}"


def _kinds(report: ReconcileReport) -> Iterator[str]:
    kinds = report.kinds
    if kinds.note:
        yield kinds.note
    if not kinds.read:
        return
    yield f"{kinds.read:,} of {kinds.differing:,} differing keys read on both sides"
    rows = [("KIND", "KEYS", "COLUMNS", "FOR EXAMPLE")]
    for line in kinds.lines:
        first = line.examples[0]
        shown = f"{first.key}: {first.onprem or 'NULL'} / {first.cloud or 'NULL'}"
        rows.append((line.kind, f"{line.keys:,}", ", ".join(line.columns), shown))
    yield from aligned(rows)
    if kinds.equal:
        yield f"{kinds.equal:,} have equal rows: only a hash was wrong, or the row has followed since"


def _rest(report: ReconcileReport) -> Iterator[str]:
    repair, pending = report.repair, report.pending
    by_status = named(repair.by_status)
    yield f"{repair.keys:,} keys to send again{f': {by_status}' if by_status else ''}"
    yield f"{pending.keys:,} keys wait, {pending.overdue:,} of them past their deadline"
    letters = ", ".join(f"{line.records:,} {line.code}" for line in report.letters)
    yield f"dead letters: {letters or 'none'}"


KIND = "reconcile"


def last_report(folder: Path) -> Path | None:
    """The JSON of the newest report there: names begin with their time."""
    return max(folder.glob("[0-9]*.json"), default=None)


def write_report(folder: Path, report: ReconcileReport) -> ReportFiles:
    """The two files, named by the time of the report."""
    digits = re.sub(r"\D", "", report.header.made_at)
    name = f"{digits[:8]}T{digits[8:]}Z"
    return write_files(folder, name, report_html(report), report_json(report))
