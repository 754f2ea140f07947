"""Request, plan and report of a maintenance run: values that the ops store keeps, and their text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from itertools import groupby
from typing import Self, TypeVar

from pydantic import BaseModel, ConfigDict

from headgate.core.ledger.model import RunOptions
from headgate.errors import UsageError, count_of
from headgate.maintenance.selection import (
    COMPACTED,
    KEEP,
    MIN_FILES,
    OLDER_THAN,
    ORPHANS_OLDER_THAN,
    TABLES,
    family,
)

COMPACT, EXPIRE, VACUUM = "compact", "expire", "vacuum"
ACTIONS = (COMPACT, EXPIRE, VACUUM)
UNITS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}


def span_of(text: str) -> timedelta:
    """`7d`, `36h`, `90m` or `30s` as a span of time."""
    found = re.fullmatch(r"(\d{1,9})([dhms])", text.strip())
    if found is None:
        raise UsageError(f"{text!r} is no span of time", fix="write it like 7d, 36h, 90m or 30s")
    return timedelta(seconds=int(found[1]) * UNITS[found[2]])


class MaintenanceRunOptions(RunOptions):
    """The options of a maintenance run: what to do, to which tables, and within which limits."""

    actions: tuple[str, ...] = (COMPACT, EXPIRE)
    compact_tables: tuple[str, ...] = COMPACTED
    other_tables: tuple[str, ...] = TABLES
    older_than: timedelta = OLDER_THAN
    keep: int = KEEP
    orphans_older_than: timedelta = ORPHANS_OLDER_THAN
    min_files: int = MIN_FILES
    dry_run: bool = False
    # The run whose plan was shown and confirmed: no more than that is done.
    plan_run: int | None = None

    def does(self, action: str, role: str) -> bool:
        """Whether this action is to be done to the table in this role."""
        tables = self.compact_tables if action == COMPACT else self.other_tables
        return action in self.actions and family(role) in tables


class _Kept(BaseModel):
    model_config = ConfigDict(frozen=True)


class PartPlan(_Kept):
    """A part whose small files are to be written anew."""

    name: str
    small_files: int
    small_bytes: int


class SnapshotPlan(_Kept):
    """A snapshot, and why it goes or stays."""

    id: int
    at: datetime
    operation: str
    goes: bool
    why: str


class OrphanPlan(_Kept):
    """A file that no snapshot knows."""

    path: str
    bytes: int


class Size(_Kept):
    """How large a table is in every way that maintenance changes."""

    files: int
    bytes: int
    small_files: int | None
    parts: int | None
    manifests: int
    snapshots: int
    metadata_files: int


class TablePlan(_Kept):
    """What is to be done to one table; None where that was not asked for."""

    role: str
    table: str
    uuid: str
    snapshot: int | None
    size: Size
    compact: tuple[PartPlan, ...] | None = None
    rewrite_manifests: bool = False
    expire: tuple[SnapshotPlan, ...] | None = None
    orphans: tuple[OrphanPlan, ...] | None = None

    @property
    def going(self) -> frozenset[int]:
        return frozenset(snapshot.id for snapshot in self.expire or () if snapshot.goes)

    @property
    def has_work(self) -> bool:
        return bool(self.compact or self.rewrite_manifests or self.going or self.orphans)

    def within(self, shown: Self | None) -> Self:
        """This plan, but nothing that was not shown before."""
        if shown is None or shown.uuid != self.uuid:
            return self.model_copy(
                update={"compact": (), "rewrite_manifests": False, "expire": (), "orphans": ()}
            )
        parts = {part.name for part in shown.compact or ()}
        files = {file.path for file in shown.orphans or ()}
        return self.model_copy(
            update={
                "compact": _only(self.compact, lambda part: part.name in parts),
                "rewrite_manifests": self.rewrite_manifests and shown.rewrite_manifests,
                "expire": _only(self.expire, lambda s: not s.goes or s.id in shown.going),
                "orphans": _only(self.orphans, lambda file: file.path in files),
            }
        )


class Plan(_Kept):
    """What a run would do, or is about to do."""

    job: str
    run: int
    made_at: datetime
    tables: tuple[TablePlan, ...]

    @property
    def has_work(self) -> bool:
        return any(table.has_work for table in self.tables)

    def of(self, role: str) -> TablePlan | None:
        return next((table for table in self.tables if table.role == role), None)


class TableReport(_Kept):
    """What was done to one table."""

    table: str
    before: Size
    after: Size
    parts_compacted: int = 0
    parts_left: tuple[str, ...] = ()
    retries: int = 0
    manifests_rewritten: int = 0
    snapshots_expired: int = 0
    files_deleted: int = 0
    orphans_removed: int = 0
    orphan_bytes: int = 0
    notes: tuple[str, ...] = ()

    @property
    def is_worth_telling(self) -> bool:
        """Whether this run did something here, or meant to and could not."""
        done = self.parts_compacted + self.snapshots_expired + self.orphans_removed
        return bool(done or self.manifests_rewritten or self.parts_left or self.notes)


class Report(_Kept):
    """What a run did."""

    job: str
    run: int
    tables: tuple[TableReport, ...]

    @property
    def sentence(self) -> str:
        """The run in one line."""
        parts = sum(table.parts_compacted for table in self.tables)
        expired = sum(table.snapshots_expired for table in self.tables)
        removed = sum(table.orphans_removed for table in self.tables)
        files = sum(table.after.files - table.before.files for table in self.tables)
        manifests = sum(table.manifests_rewritten for table in self.tables)
        found = {
            f"{count_of(parts, 'part')} compacted ({files:+,} files)": parts,
            f"{count_of(manifests, 'manifest')} rewritten": manifests,
            f"{count_of(expired, 'snapshot')} expired": expired,
            f"{count_of(removed, 'orphan file')} removed": removed,
        }
        return ", ".join(words for words, count in found.items() if count) or "nothing to do"


T = TypeVar("T")


def _only(items: Iterable[T] | None, wanted: Callable[[T], bool]) -> tuple[T, ...] | None:
    return None if items is None else tuple(item for item in items if wanted(item))


PARTS_SHOWN = FILES_SHOWN = 10


def plan_text(plan: Plan) -> str:
    """What would be done, table by table."""
    tables = ["\n".join([table.table, *_planned(table, plan.made_at)]) for table in plan.tables]
    title = f"Plan of {plan.job}, {plan.made_at:%Y-%m-%d %H:%M:%S} UTC"
    return "\n\n".join([title, *(tables or ["no table is there yet"])])


def _planned(table: TablePlan, now: datetime) -> Iterator[str]:
    size = table.size
    within = "" if size.parts is None else f" in {_n(size.parts, 'part')}"
    yield (
        f"  {_n(size.files, 'file')}{within}, {_bytes(size.bytes)};"
        f" {_n(size.snapshots, 'snapshot')}, {_n(size.manifests, 'manifest')},"
        f" {_n(size.metadata_files, 'metadata file')}"
    )
    if table.compact is not None:
        files = sum(part.small_files for part in table.compact)
        yield f"  compact: {_n(files, 'small file')} in {_n(len(table.compact), 'part')}"
        for part in table.compact[:PARTS_SHOWN]:
            yield f"    {part.name:<12} {part.small_files:>6,} files  {_bytes(part.small_bytes):>10}"
        yield from _more(len(table.compact), PARTS_SHOWN)
    if table.rewrite_manifests:
        yield f"  rewrite {_n(size.manifests, 'manifest')}"
    if table.expire is not None:
        yield f"  expire: {_n(len(table.going), 'snapshot')} of {len(table.expire):,}"
        yield from _verdicts(table.expire, now)
    if table.orphans is not None:
        total = sum(file.bytes for file in table.orphans)
        yield f"  vacuum: {_n(len(table.orphans), 'orphan file')}, {_bytes(total)}"
        for file in table.orphans[:FILES_SHOWN]:
            yield f"    {file.path}  {_bytes(file.bytes)}"
        yield from _more(len(table.orphans), FILES_SHOWN)


def _verdicts(snapshots: tuple[SnapshotPlan, ...], now: datetime) -> Iterator[str]:
    """Neighbours that share a verdict and its reason stand in one line, newest first."""
    for (goes, why), found in groupby(snapshots, lambda s: (s.goes, s.why)):
        group = list(found)
        which = str(group[0].id) if len(group) == 1 else _n(len(group), "snapshot")
        ages = dict.fromkeys((_age(group[0].at, now), _age(group[-1].at, now)))
        yield f"    {'goes' if goes else 'stays'}  {which}, {' to '.join(ages)} old: {why}"


def report_text(report: Report) -> str:
    """What was done, table by table; where nothing was, a table is left out."""
    told = (table for table in report.tables if table.is_worth_telling)
    tables = ["\n".join([table.table, *_done(table)]) for table in told]
    title = f"Report of {report.job} run {report.run}: {report.sentence}"
    return "\n\n".join([title, *tables])


def _done(table: TableReport) -> Iterator[str]:
    before, after = table.before, table.after
    for name, old, new in (
        ("files", before.files, after.files),
        ("small files", before.small_files, after.small_files),
        ("bytes", _bytes(before.bytes), _bytes(after.bytes)),
        ("manifests", before.manifests, after.manifests),
        ("snapshots", before.snapshots, after.snapshots),
        ("metadata files", before.metadata_files, after.metadata_files),
    ):
        if old is not None and new is not None:
            yield f"  {name:<15} {_told(old):>10} → {_told(new):>10}"
    if table.parts_compacted or table.parts_left:
        yield f"  compacted {_n(table.parts_compacted, 'part')}, {table.retries} tried again"
    if table.parts_left:
        yield f"  left for the next time, since others wrote there: {', '.join(table.parts_left)}"
    if table.manifests_rewritten:
        yield f"  rewrote {_n(table.manifests_rewritten, 'manifest')}"
    if table.snapshots_expired:
        yield f"  expired {_n(table.snapshots_expired, 'snapshot')}, deleted {_n(table.files_deleted, 'file')}"
    if table.orphans_removed:
        yield f"  removed {_n(table.orphans_removed, 'orphan file')}, {_bytes(table.orphan_bytes)}"
    yield from (f"  {note}" for note in table.notes)


def _more(count: int, shown: int) -> Iterator[str]:
    if count > shown:
        yield f"    and {count - shown:,} more"


def _told(value: int | str) -> str:
    return value if isinstance(value, str) else f"{value:,}"


def _n(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def _age(at: datetime, now: datetime) -> str:
    seconds = max((now - at).total_seconds(), 0)
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def _bytes(count: int) -> str:
    size = float(count)
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TB"
