"""The report of a reconciliation: one object, which reads as text, JSON or a page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headgate.errors import count_of
from headgate.quality.spec.rule_set import SEVERITIES, Severity
from headgate.terminal.report import Sum

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Header:
    """What was reconciled, with which times, and up to when; `as_of` is the last change it knows."""

    table: str
    job: str
    run: int | None
    state: str
    revision: str
    sources: tuple[str, ...]
    window: str
    grace: str
    horizon: str
    batches: int
    first_change: str
    last_change: str
    made_at: str
    as_of: str


@dataclass(frozen=True)
class RollupLine:
    """Keys that are valid, invalid, missing or pending."""

    rollup: str
    keys: int
    share: float


@dataclass(frozen=True)
class StatusLine:
    """Keys with one status; `change` is against the report before."""

    status: str
    rollup: str
    severity: str | None
    reason: str
    keys: int
    share: float
    change: int | None = None


@dataclass(frozen=True)
class Point:
    """How many keys had which status at a time."""

    at: str
    statuses: Mapping[str, int]
    rollups: Mapping[str, int]

    @property
    def keys(self) -> int:
        return sum(self.statuses.values())


@dataclass(frozen=True)
class Example:
    """A column in which the two sides of a key differ."""

    key: str
    status: str
    column: str
    onprem: str | None
    cloud: str | None


@dataclass(frozen=True)
class KindLine:
    """One kind of difference: how often, in which columns, and some examples."""

    kind: str
    words: str
    keys: int
    columns: Mapping[str, int]
    examples: tuple[Example, ...] = ()


@dataclass(frozen=True)
class Kinds:
    """Why hashes differ: `read` of the `differing` keys were read on both sides.

    `equal` of them have equal rows by now: only a hash was wrong, or the row has followed since.
    """

    differing: int
    read: int
    equal: int = 0
    gone: int = 0
    lines: tuple[KindLine, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class PendingLine:
    """A key that waits, and what it would be if nothing came."""

    key: str
    status: str
    provisional: str
    since: str
    deadline: str
    overdue: bool


@dataclass(frozen=True)
class Pending:
    """Those whose deadline is the earliest come first."""

    keys: int
    overdue: int
    shown: tuple[PendingLine, ...] = ()


@dataclass(frozen=True)
class LetterLine:
    """Messages that could take no part, by reason."""

    code: str
    words: str
    records: int
    change: int | None = None


@dataclass(frozen=True)
class Objective:
    """The share of keys that must be settled within window and grace."""

    target: float
    settled: int
    within: int

    @property
    def share(self) -> float:
        return self.within / self.settled if self.settled else 1.0

    @property
    def met(self) -> bool:
        return self.share >= self.target


@dataclass(frozen=True)
class RepairLine:
    """One key to send again."""

    key: str
    status: str
    version: str
    cloud_version: str
    since: str


@dataclass(frozen=True)
class RepairList:
    """What has to be sent again, in the order of the source's versions; the first ones are shown."""

    keys: int
    by_status: Mapping[str, int]
    shown: tuple[RepairLine, ...] = ()


@dataclass(frozen=True)
class Move:
    """So many keys went from one status to another; from nothing when they were new."""

    before: str | None
    after: str
    keys: int


@dataclass(frozen=True)
class Since:
    """What changed since the report before."""

    made_at: str
    file: str
    keys: int
    moves: tuple[Move, ...] = ()


@dataclass(frozen=True)
class ReconcileReport:
    """Everything that the report says."""

    header: Header
    keys: int
    rollups: tuple[RollupLine, ...]
    statuses: tuple[StatusLine, ...]
    flags: Mapping[str, int]
    points: tuple[Point, ...]
    kinds: Kinds
    pending: Pending
    letters: tuple[LetterLine, ...]
    objective: Objective
    repair: RepairList
    outcomes: Mapping[str, int]
    sums: tuple[Sum, ...]
    since: Since | None = None
    notes: tuple[str, ...] = ()

    @property
    def adds_up(self) -> bool:
        return all(one.holds for one in self.sums)

    def rollup(self, name: str) -> RollupLine:
        return next(line for line in self.rollups if line.rollup == name)


def broken_statuses(report: ReconcileReport, level: Severity) -> tuple[str, ...]:
    """A line for each status of severity `level` or above that a key has now."""
    severities = SEVERITIES[: SEVERITIES.index(level) + 1]
    return tuple(
        f"{line.severity} {line.status}: {count_of(line.keys, 'key')}"
        for line in report.statuses
        if line.keys and line.severity in severities
    )
