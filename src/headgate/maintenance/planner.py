"""Plan a maintenance run: facts of the tables, and what jobs still need of them, judged by the selection.

Jobs need the newest commit of every job that resumes from its commits, the snapshots that readers have come to,
and everything since the oldest open batch began.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING

from headgate.app import MAINTAINED, load
from headgate.core.engine.run import RunContext
from headgate.core.lake.commits import Marker, is_fence
from headgate.core.lake.table import ManagedTable
from headgate.core.lake.table_use import TableUse
from headgate.core.ledger.model import Intent
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.ledger.ranges import OffsetRange, Range, TableRange
from headgate.maintenance.plan import (
    ACTIONS,
    COMPACT,
    EXPIRE,
    VACUUM,
    MaintenanceRunOptions,
    OrphanPlan,
    PartPlan,
    Size,
    SnapshotPlan,
    TablePlan,
)
from headgate.maintenance.selection import (
    Limits,
    Needs,
    Part,
    newest_markers,
    plan_compaction,
    plan_expiry,
)
from headgate.maintenance.table import MaintainedTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Books:
    """The ops store as maintenance needs it: per job how far it is settled, and what is open."""

    settled: Mapping[str, Range | None]
    open: tuple[Intent, ...]

    @classmethod
    def read(cls, store: OpsStore, jobs: Iterable[str]) -> Books:
        """Of these jobs and of every job that ever ran."""
        known = {*jobs, *(run.job for run in store.runs())}
        return cls(
            {job: store.settled_range(job) for job in known},
            tuple(intent for job in known for intent in store.open_intents(job)),
        )


def needs_of(
    table: str,
    newest: Mapping[str, Marker],
    resuming: Collection[str],
    readers: Mapping[str, Marker],
    books: Books,
    writing: Collection[str] = (),
) -> Needs:
    """What stays needed of a table.

    `newest` are the newest markers in it, `resuming` the jobs that go on from theirs, `readers` the
    markers, in other tables, of jobs that read this one, `writing` those that may write to it: the
    first batch of one has left no marker yet.
    """
    return Needs(
        markers=frozenset(
            job
            for job, found in newest.items()
            if job in resuming or not (is_fence(job) or _is_settled(found, books))
        ),
        positions=_positions(table, readers, books),
        open_since=_open_since({*newest, *resuming, *writing}, books),
    )


def _is_settled(found: Marker, books: Books) -> bool:
    """Whether the ledger has this job's batch: then its outcome needs the marker no more."""
    settled = books.settled.get(found.job)
    if settled is None or any(intent.job == found.job for intent in books.open):
        return False
    if settled.source_id != found.range.source_id:
        return True  # the topic was made again, and nothing of the old one is open
    if not isinstance(settled, OffsetRange):
        return settled.end == found.range.end
    return all(settled.end.get(key, 0) >= end for key, end in found.range.end.items())


def _positions(table: str, readers: Mapping[str, Marker], books: Books) -> dict[int, str]:
    """The snapshots that jobs go on from, and those between which open batches read."""
    positions: dict[int, str] = {}
    for job, reader in readers.items():
        for read in (reader.range, books.settled.get(job)):
            if isinstance(read, TableRange) and read.table == table:
                positions.setdefault(read.last, job)
    for intent in books.open:
        if isinstance(intent.range, TableRange) and intent.range.table == table:
            for snapshot in (intent.range.first, intent.range.last):
                if snapshot is not None:
                    positions.setdefault(snapshot, f"an open batch of {intent.job}")
    return positions


def _open_since(writers: Collection[str], books: Books) -> datetime | None:
    """When the oldest open batch began that may write here."""
    return min((i.batch_time for i in books.open if i.job in writers), default=None)


# Appends and merges join manifests by themselves only at a hundred.
MANY_MANIFESTS = 30


def maintained_tables(context: RunContext, session: SparkSession) -> dict[str, TableUse]:
    """The tables that are there, by role, with all jobs of all capabilities that use one."""
    listed = (load(entry)(context.store, context.run) for entry in MAINTAINED)
    uses = merge_uses(chain.from_iterable(listed))
    return {role: use for role, use in uses.items() if ManagedTable(session, use.name).exists()}


def merge_uses(uses: Iterable[TableUse]) -> dict[str, TableUse]:
    """One use a role with the jobs of all, in the order in which roles are first named."""
    merged: dict[str, TableUse] = {}
    for use in uses:
        known = merged.setdefault(use.role, use)
        merged[use.role] = replace(
            known,
            resuming=known.resuming | use.resuming,
            writing=known.writing | use.writing,
            readers={**known.readers, **use.readers},
        )
    return merged


class Planner:
    """Reads the facts of the tables and asks the pure planners."""

    def __init__(
        self,
        session: SparkSession,
        store: OpsStore,
        tables: Mapping[str, TableUse],
        options: MaintenanceRunOptions,
        clock: Callable[[], datetime],
    ) -> None:
        self._session, self._store = session, store
        self.tables, self.options, self.now = tables, options, clock

    def plan(self) -> tuple[TablePlan, ...]:
        roles = [
            role
            for role in self.tables
            if any(self.options.does(action, role) for action in ACTIONS)
        ]
        return tuple(self.table_plan(role) for role in roles)

    def table_plan(self, role: str) -> TablePlan:
        """What is to be done to this table, as it is now."""
        table, does = self.look(role), self.options.does
        parts = table.parts() if does(COMPACT, role) else None
        size = size_of(table, parts)
        return TablePlan(
            role=role,
            table=table.name,
            uuid=table.uuid,
            snapshot=table.current,
            size=size,
            compact=None if parts is None else self.parts_to_compact(parts),
            rewrite_manifests=does(COMPACT, role) and size.manifests >= MANY_MANIFESTS,
            expire=self.verdicts(role, table) if does(EXPIRE, role) else None,
            orphans=self._orphans(table) if does(VACUUM, role) else None,
        )

    def look(self, role: str) -> MaintainedTable:
        return MaintainedTable(self._session, self.tables[role].name)

    def parts_to_compact(self, parts: tuple[Part, ...]) -> tuple[PartPlan, ...]:
        chosen = plan_compaction(parts, self.now().date(), self.options.min_files)
        return tuple(
            PartPlan(name=p.name, small_files=p.small_files, small_bytes=p.small_bytes)
            for p in chosen
        )

    def verdicts(self, role: str, table: MaintainedTable) -> tuple[SnapshotPlan, ...]:
        limits = Limits(self.options.older_than, self.options.keep)
        judged = plan_expiry(table.history(), self._needs(role, table), limits, self.now())
        return tuple(
            SnapshotPlan(
                id=j.snapshot.id,
                at=j.snapshot.at,
                operation=j.snapshot.operation,
                goes=j.goes,
                why=j.why,
            )
            for j in judged
        )

    def _needs(self, role: str, table: MaintainedTable) -> Needs:
        use, newest = self.tables[role], _markers(table)
        jobs = {*newest, *use.resuming, *use.writing, *use.readers}
        return needs_of(
            table.name,
            newest,
            use.resuming,
            self._readers(use),
            Books.read(self._store, jobs),
            use.writing,
        )

    def _readers(self, use: TableUse) -> dict[str, Marker]:
        """The newest marker of each job that reads this table, in the table that the job writes."""
        found = {
            job: _markers(self.look(role)).get(job)
            for job, role in use.readers.items()
            if role in self.tables
        }
        return {job: marker for job, marker in found.items() if marker is not None}

    def _orphans(self, table: MaintainedTable) -> tuple[OrphanPlan, ...]:
        found = table.orphans(self.options.orphans_older_than)
        return tuple(OrphanPlan(path=o.path, bytes=o.bytes) for o in found)


def size_of(table: MaintainedTable, parts: tuple[Part, ...] | None) -> Size:
    """How large the table is; how many of its files are small only where its parts were looked at."""
    return Size(
        files=table.total("data-files"),
        bytes=table.total("files-size"),
        small_files=None if parts is None else sum(part.small_files for part in parts),
        parts=None if parts is None else len(parts),
        manifests=table.manifests(),
        snapshots=len(table.snapshots),
        metadata_files=table.metadata_files(),
    )


def _markers(table: MaintainedTable) -> dict[str, Marker]:
    """The newest marker of each job in the table."""
    found = {job: table.marker(id_) for job, id_ in newest_markers(table.history()).items()}
    return {job: marker for job, marker in found.items() if marker is not None}
