"""Select what maintenance may remove or rewrite: snapshots to expire, parts to compact; and its defaults.

Pure functions over a table's history and files; imported by the command line, so standard library only.
The main branch stays one unbroken line from the current snapshot back, since jobs find their commits by
walking it: the oldest snapshot that has a reason to stay keeps all after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

MAIN = "main"
# A staged snapshot this young may belong to a batch that has yet to publish it.
STAGED_AT_LEAST = timedelta(hours=24)
# The clocks of a job and of its table need not agree to the second.
SLACK = timedelta(minutes=1)


@dataclass(frozen=True)
class SnapshotFact:
    """One snapshot: `job` is that of its own marker, `source` the staged one it was published from."""

    id: int
    parent: int | None
    at: datetime
    operation: str
    job: str | None = None
    source: int | None = None


@dataclass(frozen=True)
class History:
    """All snapshots of a table, in any order, and what names them."""

    current: int | None
    snapshots: tuple[SnapshotFact, ...]
    refs: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def by_id(self) -> dict[int, SnapshotFact]:
        return {snapshot.id: snapshot for snapshot in self.snapshots}

    def line(self, start: int | None) -> Iterator[SnapshotFact]:
        """From this snapshot back to the oldest of its ancestors that is still there."""
        known = self.by_id
        while start is not None and start in known:
            yield known[start]
            start = known[start].parent


@dataclass(frozen=True)
class Needs:
    """What others still ask of a table."""

    markers: frozenset[str] = frozenset()
    """Jobs that go on from their newest marker in it, or have yet to settle it."""
    positions: Mapping[int, str] = field(default_factory=dict[int, str])
    """Snapshots that a reader goes on from, and who that is."""
    open_since: datetime | None = None
    """When the oldest batch began that writes to it and is not settled."""


@dataclass(frozen=True)
class Limits:
    """A snapshot goes only when it is older than this and beyond the newest `keep`."""

    older_than: timedelta
    keep: int


@dataclass(frozen=True)
class Judged:
    """A snapshot, whether it goes, and why it does or stays."""

    snapshot: SnapshotFact
    goes: bool
    why: str


def plan_expiry(
    history: History, needs: Needs, limits: Limits, now: datetime
) -> tuple[Judged, ...]:
    """Every snapshot with its verdict, the newest first."""
    main = tuple(history.line(history.current))
    on_main = {snapshot.id for snapshot in main}
    aside = [snapshot for snapshot in history.snapshots if snapshot.id not in on_main]
    staying = _aside_reasons(history, aside, limits, now)
    reasons = _main_reasons(history, main, needs, limits, now)
    published = {snapshot.source for snapshot in main}
    for staged in (s for s in aside if s.id in staying and s.id not in published):
        if staged.parent in on_main:
            # What was published since it was staged must still be there to refuse its start.
            reasons.setdefault(staged.parent, f"staged snapshot {staged.id} was made on it")
    judged = _judge_main(main, reasons)
    sources = {j.snapshot.source: j.snapshot.id for j in judged if not j.goes}
    judged += [_judge_aside(snapshot, staying, sources) for snapshot in aside]
    return tuple(sorted(judged, key=lambda j: (j.snapshot.at, j.snapshot.id), reverse=True))


def _main_reasons(
    history: History, main: tuple[SnapshotFact, ...], needs: Needs, limits: Limits, now: datetime
) -> dict[int, str]:
    """Why snapshots of the main line must stay, the weightiest reason first."""
    reasons: dict[int, str] = {}
    for snapshot in main[:1]:
        reasons[snapshot.id] = "the current snapshot"
    on_main = {snapshot.id for snapshot in main}
    for name, line in _other_refs(history):
        forked = next((snapshot.id for snapshot in line if snapshot.id in on_main), None)
        if forked is not None:
            reasons.setdefault(forked, f"{name} leads to it")
    for job, id_ in newest_markers(history).items():
        if job in needs.markers:
            reasons.setdefault(id_, f"the newest marker of {job}")
    for id_, reader in needs.positions.items():
        reasons.setdefault(id_, f"{reader} goes on from it")
    for place, snapshot in enumerate(main):
        if needs.open_since is not None and snapshot.at >= needs.open_since - SLACK:
            reasons.setdefault(snapshot.id, "a batch that began before it is still open")
        if place < limits.keep:
            reasons.setdefault(snapshot.id, f"one of the newest {limits.keep}")
        if now - snapshot.at <= limits.older_than:
            reasons.setdefault(snapshot.id, f"younger than {words(limits.older_than)}")
    return reasons


def _other_refs(history: History) -> Iterator[tuple[str, Iterator[SnapshotFact]]]:
    """Tags and branches beside main, each with its line of ancestors."""
    for name, id_ in history.refs.items():
        if name != MAIN:
            yield name, history.line(id_)


def newest_markers(history: History) -> dict[str, int]:
    """Per job the newest snapshot of the main line that bears its marker, or whose source does."""
    known, found = history.by_id, dict[str, int]()
    for snapshot in history.line(history.current):
        source = known.get(snapshot.source) if snapshot.source is not None else None
        job = snapshot.job or (source.job if source else None)
        if job is not None:
            found.setdefault(job, snapshot.id)
    return found


def _judge_main(main: tuple[SnapshotFact, ...], reasons: Mapping[int, str]) -> list[Judged]:
    last = max((i for i, snapshot in enumerate(main) if snapshot.id in reasons), default=-1)
    return [
        Judged(snapshot, False, reasons.get(snapshot.id, "an older one must stay"))
        if place <= last
        else Judged(snapshot, True, "old, and nobody needs it")
        for place, snapshot in enumerate(main)
    ]


def _aside_reasons(
    history: History, aside: list[SnapshotFact], limits: Limits, now: datetime
) -> dict[int, str]:
    """Why snapshots beside the main line must stay."""
    reasons: dict[int, str] = {}
    for name, line in _other_refs(history):
        for ancestor in line:
            reasons.setdefault(ancestor.id, f"{name} leads to it")
    youngest = max(limits.older_than, STAGED_AT_LEAST)
    for snapshot in aside:
        if now - snapshot.at <= youngest:
            reasons.setdefault(snapshot.id, f"staged less than {words(youngest)} ago")
    return reasons


def _judge_aside(
    snapshot: SnapshotFact, staying: Mapping[int, str], sources: Mapping[int | None, int]
) -> Judged:
    if snapshot.id in sources:
        return Judged(snapshot, False, f"{sources[snapshot.id]} was published from it")
    if snapshot.id in staying:
        return Judged(snapshot, False, staying[snapshot.id])
    return Judged(snapshot, True, "left over: staged and not published, or rolled back")


def words(span: timedelta) -> str:
    """A span in its largest whole unit: 7d, 36h, 90s."""
    seconds = int(span.total_seconds())
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds and seconds % size == 0:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


TARGET_BYTES = 128 * 1024 * 1024
# Iceberg leaves files alone that are at least this part of the target.
SMALL_BYTES = TARGET_BYTES * 3 // 4
MIN_FILES = 5
# One commit: each makes a merge that is under way begin again, and is lost if it meets one.
PARTS_AT_ONCE, BYTES_AT_ONCE = 10, 2 * 1024**3


@dataclass(frozen=True)
class Part:
    """The data files of one partition date, or of a table that has no partitions."""

    date: date | None
    files: int
    bytes: int
    small_files: int
    small_bytes: int
    dated: bool = True

    @property
    def name(self) -> str:
        if not self.dated:
            return "all"
        return self.date.isoformat() if self.date else "no date"


def is_closed(part: Part, today: date) -> bool:
    """Whether its date is over; rows without a date, and a table without dates, belong to none."""
    return part.date is None or part.date < today


def plan_compaction(parts: Iterable[Part], today: date, min_files: int) -> tuple[Part, ...]:
    """The closed parts with enough small files, those with the most first."""
    wanted = (p for p in parts if is_closed(p, today) and is_worth_it(p, max(min_files, 2)))
    return tuple(sorted(wanted, key=lambda p: (-p.small_files, p.name)))


def is_worth_it(part: Part, min_files: int) -> bool:
    """Whether there are many small files, and writing them anew makes fewer of them."""
    at_best = -(-part.small_bytes // TARGET_BYTES)
    return part.small_files >= min_files and part.small_files > at_best


def chunks(
    parts: Sequence[Part], count: int = PARTS_AT_ONCE, size: int = BYTES_AT_ONCE
) -> Iterator[tuple[Part, ...]]:
    """The parts in turn, as many at once as one commit should bring."""
    chunk: tuple[Part, ...] = ()
    for part in parts:
        if chunk and (len(chunk) == count or small_bytes(chunk) + part.small_bytes > size):
            yield chunk
            chunk = ()
        chunk = (*chunk, part)
    if chunk:
        yield chunk


def small_bytes(parts: Iterable[Part]) -> int:
    return sum(part.small_bytes for part in parts)


# The tables of all rule sets and pairs; each of them has a role of its own, as `dq.states_business`.
DQ = "dq"
TABLES = ("bronze", "silver", "dead-letters", DQ)
COMPACTED = ("silver", DQ)
KEEP = 10
OLDER_THAN, ORPHANS_OLDER_THAN = timedelta(days=7), timedelta(days=3)
# Iceberg refuses to look for younger ones: they may belong to a write that is under way.
ORPHANS_AT_LEAST = timedelta(hours=24)


def family(role: str) -> str:
    """What is asked for where this role is meant."""
    return role.partition(".")[0]
