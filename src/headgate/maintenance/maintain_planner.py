"""The plan of a maintenance run: the facts of a dataset's tables, judged by the pure planners."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from headgate.core.engine.context import RunContext
from headgate.core.lake.iceberg import ManagedTable
from headgate.core.lake.markers import Marker
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.sql.compile_fragments import DEAD_LETTERS, job_name, table_name
from headgate.maintenance.maintain_needs import Books, needs_of
from headgate.maintenance.maintain_plan import (
    ACTIONS,
    COMPACT,
    EXPIRE,
    VACUUM,
    OrphanPlan,
    PartPlan,
    Size,
    SnapshotPlan,
    TablePlan,
    Wanted,
)
from headgate.maintenance.maintain_usual import DQ, family
from headgate.maintenance.maintenance import Limits, Needs, newest_markers, plan_expiry
from headgate.maintenance.small_files import Part, plan_compaction
from headgate.maintenance.table import MaintainedTable
from headgate.pipeline import declaration
from headgate.quality.compile.names import NAMESPACE, QUALITY, RECONCILE
from headgate.reconcile.job.reconcile_sweep import KIND as SWEEP

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Appends and merges join manifests by themselves only at a hundred.
MANY_MANIFESTS = 30
# What grows with every batch; keys that were seen are let go of by their own job.
GROWING = ("states", "results", "partials")
JUDGING = (QUALITY, RECONCILE, SWEEP)


@dataclass(frozen=True)
class Subject:
    """The tables of one dataset that are there, by role, and the jobs that write to them."""

    tables: Mapping[str, str]
    bronze_job: str
    silver_job: str
    backfill_job: str

    @property
    def resuming(self) -> Mapping[str, tuple[str, ...]]:
        """Jobs that go on from their newest marker in a table."""
        own = {"bronze": (self.bronze_job,), "silver": (self.silver_job,)}
        return {**own, **self._judging}

    @property
    def writing(self) -> Mapping[str, tuple[str, ...]]:
        """Jobs that may have a batch under way in a table."""
        bronze = (self.bronze_job,)
        silver = (self.silver_job, self.backfill_job)
        judging = tuple(job for jobs in self._judging.values() for job in jobs)
        letters = (*bronze, *sorted({*judging}))
        return {"bronze": bronze, "silver": silver, "dead-letters": letters, **self._judging}

    @property
    def _judging(self) -> Mapping[str, tuple[str, ...]]:
        """The jobs of rule sets and pairs, by the roles of their tables."""
        return {role: judging_jobs(role) for role in self.tables if family(role) == DQ}


def subject_of(context: RunContext, session: SparkSession) -> Subject:
    revision = declaration.fetch(context.store, context.run.revision)
    names = {
        "bronze": table_name(revision.bronze_table),
        "silver": table_name(revision.silver_table),
        "dead-letters": DEAD_LETTERS,
    }
    there = {role: name for role, name in names.items() if ManagedTable(session, name).exists()}
    there |= judged_tables(session, context.store)
    jobs = (job_name(kind, revision.name) for kind in ("bronze", "silver", "backfill"))
    return Subject(there, *jobs)


def judged_tables(session: SparkSession, store: OpsStore) -> dict[str, str]:
    """The tables that only grow of each rule set and pair whose job ever ran, by role."""
    subjects = sorted({run.subject for run in store.runs() if run.kind in (QUALITY, RECONCILE)})
    names = [f"{kind}_{subject}" for subject in subjects for kind in GROWING]
    found = {f"{DQ}.{name}": table_name(f"{NAMESPACE}.{name}") for name in names}
    return {role: name for role, name in found.items() if ManagedTable(session, name).exists()}


def judging_jobs(role: str) -> tuple[str, ...]:
    """The jobs that write to a table of a rule set or pair."""
    subject = role.partition(".")[2].partition("_")[2]
    return tuple(job_name(kind, subject) for kind in JUDGING)


class Planner:
    """Reads the facts of the tables and asks the pure planners."""

    def __init__(
        self,
        session: SparkSession,
        store: OpsStore,
        subject: Subject,
        wanted: Wanted,
        clock: Callable[[], datetime],
    ) -> None:
        self._session, self._store = session, store
        self.subject, self.wanted, self.now = subject, wanted, clock

    def plan(self) -> tuple[TablePlan, ...]:
        roles = [
            role
            for role in self.subject.tables
            if any(self.wanted.does(action, role) for action in ACTIONS)
        ]
        return tuple(self.table_plan(role) for role in roles)

    def table_plan(self, role: str) -> TablePlan:
        """What is to be done to this table, as it is now."""
        table, does = self.look(role), self.wanted.does
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
        return MaintainedTable(self._session, self.subject.tables[role])

    def parts_to_compact(self, parts: tuple[Part, ...]) -> tuple[PartPlan, ...]:
        chosen = plan_compaction(parts, self.now().date(), self.wanted.min_files)
        return tuple(
            PartPlan(name=p.name, small_files=p.small_files, small_bytes=p.small_bytes)
            for p in chosen
        )

    def verdicts(self, role: str, table: MaintainedTable) -> tuple[SnapshotPlan, ...]:
        limits = Limits(self.wanted.older_than, self.wanted.keep)
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
        subject = self.subject
        newest = _markers(table)
        jobs = {*newest, subject.bronze_job, subject.silver_job}
        readers: Mapping[str, Marker] = {}
        if role == "bronze" and "silver" in subject.tables:
            found = _markers(self.look("silver")).get(subject.silver_job)
            readers = {subject.silver_job: found} if found else {}
        return needs_of(
            f"table:{table.name}",
            newest,
            subject.resuming.get(role, ()),
            readers,
            Books.read(self._store, jobs),
            subject.writing.get(role, ()),
        )

    def _orphans(self, table: MaintainedTable) -> tuple[OrphanPlan, ...]:
        found = table.orphans(self.wanted.orphans_older_than)
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
