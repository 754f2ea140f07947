"""Makes the report from what tables, ledger and the previous report say. Pure: values in, values out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from headgate.reconcile.decision_table import ROLLUPS, Status, statuses
from headgate.reconcile.report.model import (
    Example,
    Header,
    KindLine,
    Kinds,
    LetterLine,
    Move,
    Objective,
    Pending,
    Point,
    ReconcileReport,
    RepairList,
    RollupLine,
    Since,
    StatusLine,
)
from headgate.reconcile.row_diff import KINDS, Kind, RowDifference
from headgate.terminal.report import Sum

MOST_POINTS = 60
MOST_EXAMPLES = 5
KIND_WORDS: Mapping[Kind, str] = {
    "null_empty": "NULL on one side, empty on the other",
    "scale": "the same digits with the point moved",
    "zone_shift": "times whole quarter hours apart, as of another zone",
    "precision": "equal at fewer digits",
    "unicode_form": "equal texts in another Unicode form",
    "trim": "equal but for blanks at the ends",
    "truncation": "one is the beginning of the other",
    "case": "equal but for upper and lower case",
    "real": "none of these: somebody changed a value on one side",
}


@dataclass(frozen=True)
class Step:
    """At this time so many keys more (or fewer) had the status."""

    at: datetime
    status: str
    n: int
    rollup: str = ""


@dataclass(frozen=True)
class Before:
    """What the report before said."""

    made_at: str
    as_of: str
    file: str
    statuses: Mapping[str, int]
    letters: Mapping[str, int]


@dataclass(frozen=True)
class Evidence:
    """What is known of a reconciliation.

    `statuses` count keys; `severities` are those that rules gave, where the status is a rule's own, and
    `rollups` count the keys of each status by roll-up: those of a rule's own may differ by their verdict;
    `differing` says of each key that was read why its sides differ, and `unequal` how many there are.
    """

    statuses: Mapping[str, int]
    severities: Mapping[str, str]
    steps: tuple[Step, ...]
    flags: Mapping[str, int]
    pending: Pending
    letters: Mapping[str, tuple[str, int]]
    objective: Objective
    repair: RepairList
    outcomes: Mapping[str, int]
    read: int
    differing: tuple[tuple[str, RowDifference], ...] = ()
    unequal: int = 0
    moves: tuple[Move, ...] = ()
    before: Before | None = None
    notes: tuple[str, ...] = field(default=())
    kinds_note: str = ""
    rollups: Mapping[str, Mapping[str, int]] = field(default_factory=dict[str, Mapping[str, int]])

    def rollups_of(self, status: str) -> Mapping[str, int]:
        return self.rollups.get(status) or {rollup_of(status): self.statuses.get(status, 0)}


def make_report(header: Header, evidence: Evidence) -> ReconcileReport:
    """The report; the statuses of keys are the results table's, records are the ledger's."""
    keys = sum(evidence.statuses.values())
    return ReconcileReport(
        header=header,
        keys=keys,
        rollups=_rollups(evidence, keys),
        statuses=_statuses(evidence, keys),
        flags=evidence.flags,
        points=points_of(evidence.steps),
        kinds=kinds_of(evidence.differing, evidence.unequal, evidence.kinds_note),
        pending=evidence.pending,
        letters=_letters(evidence),
        objective=evidence.objective,
        repair=evidence.repair,
        outcomes=evidence.outcomes,
        sums=_sums(evidence, keys),
        since=_since(evidence),
        notes=evidence.notes,
    )


def rollup_of(status: str) -> str:
    """The roll-up of a status of the decision table; without its keys, a rule's own counts as invalid."""
    known = statuses().get(status)
    return known.rollup if known else "invalid"


def _rollups(evidence: Evidence, keys: int) -> tuple[RollupLine, ...]:
    summed: Counter[str] = Counter()
    for status in evidence.statuses:
        summed.update(evidence.rollups_of(status))
    return tuple(RollupLine(name, summed[name], _share(summed[name], keys)) for name in ROLLUPS)


def _statuses(evidence: Evidence, keys: int) -> tuple[StatusLine, ...]:
    """Those of the decision table in its order, then those of rules; those never seen are left out."""
    before = evidence.before.statuses if evidence.before else None
    seen = {name for name, n in evidence.statuses.items() if n}
    seen |= {name for name, n in (before or {}).items() if n}
    known = statuses()
    order = [name for name in known if name in seen] + sorted(seen - set(known))
    return tuple(_status(name, known.get(name), evidence, keys, before) for name in order)


def _status(
    name: str,
    known: Status | None,
    evidence: Evidence,
    keys: int,
    before: Mapping[str, int] | None,
) -> StatusLine:
    n = evidence.statuses.get(name, 0)
    return StatusLine(
        status=name,
        rollup=", ".join(evidence.rollups_of(name)),
        severity=evidence.severities.get(name) or (known.severity if known else None),
        reason=known.reason if known else "a rule gives it",
        keys=n,
        share=_share(n, keys),
        change=None if before is None else n - before.get(name, 0),
    )


def points_of(steps: Sequence[Step], most: int = MOST_POINTS) -> tuple[Point, ...]:
    """How the keys stood at the end of each of at most so many equal spans of time."""
    if not steps:
        return ()
    ordered = sorted(steps, key=lambda step: step.at)
    first, last = ordered[0].at, ordered[-1].at
    spans = min(most, int((last - first).total_seconds()) + 1)
    ends = [first + (last - first) * (number + 1) / spans for number in range(spans)]
    ends[-1] = last
    return tuple(_cumulated(ordered, ends))


def _cumulated(ordered: Sequence[Step], ends: Sequence[datetime]) -> Iterable[Point]:
    counts: Counter[str] = Counter()
    rollups: Counter[str] = Counter(dict.fromkeys(ROLLUPS, 0))
    at = 0
    for end in ends:
        while at < len(ordered) and ordered[at].at <= end:
            step = ordered[at]
            counts[step.status] += step.n
            rollups[step.rollup or rollup_of(step.status)] += step.n
            at += 1
        known = {name: n for name, n in sorted(counts.items()) if n}
        yield Point(moment(end), known, dict(rollups))


def kinds_of(differing: Sequence[tuple[str, RowDifference]], unequal: int, note: str = "") -> Kinds:
    """Why keys differ, the most frequent kind first; a key counts once for each of its kinds."""
    lines = [line for kind in KINDS if (line := _kind(kind, differing)).keys]
    return Kinds(
        differing=unequal,
        read=len(differing),
        equal=sum(row.found == "equal" for _, row in differing),
        gone=sum(row.found not in ("equal", "different") for _, row in differing),
        lines=tuple(sorted(lines, key=lambda line: -line.keys)),
        note=note,
    )


def _kind(kind: Kind, differing: Sequence[tuple[str, RowDifference]]) -> KindLine:
    found = [
        Example(row.pk, status, d.column, d.onprem, d.cloud)
        for status, row in differing
        for d in row.differences
        if d.kind == kind
    ]
    columns = Counter(example.column for example in found)
    keys = len({example.key for example in found})
    shown = tuple(found[:MOST_EXAMPLES])
    return KindLine(kind, KIND_WORDS[kind], keys, dict(sorted(columns.items())), shown)


def _letters(evidence: Evidence) -> tuple[LetterLine, ...]:
    before = evidence.before.letters if evidence.before else None
    lines = [
        LetterLine(code, words, n, None if before is None else n - before.get(code, 0))
        for code, (words, n) in evidence.letters.items()
    ]
    return tuple(sorted(lines, key=lambda line: (-line.records, line.code)))


def _sums(evidence: Evidence, keys: int) -> tuple[Sum, ...]:
    """What must be equal: records by their outcomes, refused ones and their letters, keys and plot."""
    letters = sum(n for _, n in evidence.letters.values())
    outcomes = evidence.outcomes
    last = sum(step.n for step in evidence.steps)
    return (
        Sum("records read, and their outcomes", evidence.read, sum(outcomes.values())),
        Sum("records refused, and dead letters", outcomes.get("refused", 0), letters),
        Sum("keys by status, and by their changes", keys, last),
    )


def _since(evidence: Evidence) -> Since | None:
    if evidence.before is None:
        return None
    moved = sum(move.keys for move in evidence.moves)
    return Since(evidence.before.made_at, evidence.before.file, moved, evidence.moves)


def moment(at: datetime | None) -> str:
    """A time as the reports write it."""
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S") if at else ""


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
