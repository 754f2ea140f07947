"""Silver: bronze rows filtered, cast, renamed and deduplicated, rebuilt whole or brought up to date."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from headgate.compile.dataset import SILVER, SILVER_INCREMENTAL
from headgate.compile.fragments import table_name, view_stem
from headgate.compile.script import Script
from headgate.engine.context import RunContext
from headgate.engine.faults import Point
from headgate.engine.iceberg import ManagedTable, Staging, TableMovedError
from headgate.engine.jvm import IcebergTable, Snapshot
from headgate.engine.protocol import BatchProtocol, Result
from headgate.engine.reach import Reached
from headgate.engine.statements import sql
from headgate.errors import OperationError, UnavailableError
from headgate.jobs import declaration
from headgate.jobs.progress import RunProgress
from headgate.store.model import SNAPSHOT, Intent, Range

KEPT, REPLACED, DUPLICATE, FILTERED = "kept", "replaced", "duplicate", "filtered"
# In the marker of a rebuild: rows that passed the filters, before the duplicates are left out.
PASSED = "passed"
TRIES = 5


class EmptyBronzeError(UnavailableError):
    """There is nothing to make silver from; another try without bronze would not help."""

    code, retryable = "HG-8002", False


@dataclass(frozen=True)
class SilverTarget:
    """Where the rows come from and go to."""

    job: str
    name: str
    scripts: declaration.Scripts
    bronze: str
    silver: str


def run_silver(context: RunContext) -> None:
    """Bring silver up to bronze's current snapshot; rebuild it when that is asked for or needed."""
    target = _target(context)
    session = context.session.newSession()
    for statement in target.scripts.of(context.run.revision, SILVER).named("table"):
        sql(session, statement)
    protocol, progress = context.protocol(), RunProgress(context)

    def batch() -> SilverBatch:
        return SilverBatch(session, target, protocol)

    run = context.run
    for intent in context.store.open_intents(target.job):
        if is_outdated(session, target, run.revision, intent):
            context.store.withdraw(intent)
        else:
            progress.batch(protocol.finish(intent, batch()))
    range_ = next_range(session, target, run.revision, run.options.get("form", "auto"))
    progress.batch(
        protocol.process(run.job, run.number, range_, (run.revision,), run.number, batch())
    )


def _target(context: RunContext) -> SilverTarget:
    revision = declaration.fetch(context.store, context.run.revision)
    return SilverTarget(
        job=context.run.job,
        name=view_stem(revision.name),
        scripts=declaration.Scripts(context.store, context.settings),
        bronze=table_name(revision.bronze_table),
        silver=table_name(revision.silver_table),
    )


def is_outdated(session: SparkSession, target: SilverTarget, revision: str, intent: Intent) -> bool:
    """Whether nothing of it is written and its bronze or its revision is no longer the present one."""
    if ManagedTable(session, target.silver).commit_of(intent) is not None:
        return False
    bronze = ManagedTable(session, target.bronze).look()
    known = {snapshot.id for snapshot in bronze.history()}
    wanted = {*intent.range.start.values(), *intent.range.end.values()}
    same = bronze.uuid == intent.range.source_id and intent.revisions == (revision,)
    return not same or not wanted <= known


def next_range(session: SparkSession, target: SilverTarget, revision: str, form: str) -> Range:
    """From the bronze snapshot that silver has seen to the current one; all of it for a rebuild."""
    raw = ManagedTable(session, target.bronze)
    bronze = raw.look() if raw.exists() else None
    current = bronze.current() if bronze else None
    if bronze is None or current is None:
        raise EmptyBronzeError(
            f"{target.bronze} has no rows yet", fix="run bronze first: make process-bronze"
        )
    seen = _seen(ManagedTable(session, target.silver), bronze, target.job, revision)
    start = {} if form == "full" or seen is None else {SNAPSHOT: seen}
    return Range(f"table:{target.bronze}", bronze.uuid, start, {SNAPSHOT: current.id})


def _seen(silver: ManagedTable, bronze: IcebergTable, job: str, revision: str) -> int | None:
    """The bronze snapshot that silver holds; None when it must be rebuilt.

    Other filters or casts need a rebuild, and so does a bronze snapshot that is no longer there.
    """
    committed = silver.committed(job)
    if committed is None or committed.marker.revisions != (revision,):
        return None
    seen = committed.marker.range.end[SNAPSHOT]
    known = bronze.uuid == committed.marker.range.source_id
    return seen if known and any(s.id == seen for s in bronze.history()) else None


class SilverBatch:
    """One step of silver: a rebuild from a snapshot, or a merge of the rows between two."""

    def __init__(
        self, session: SparkSession, target: SilverTarget, protocol: BatchProtocol
    ) -> None:
        self._session = session
        self._target = target
        self._protocol = protocol
        self._silver = ManagedTable(session, target.silver)
        self._bronze = ManagedTable(session, target.bronze)

    def reached(self, intent: Intent) -> Reached | None:
        commit = self._silver.committed(intent.job)
        return Reached(commit.marker.range.source_id, commit.marker.range.end) if commit else None

    def account(self, intent: Intent) -> Result | None:
        return account_silver(self._silver, intent)

    def write(self, intent: Intent) -> Result:
        """The statement is run again whole when the table moved under it."""
        step = self._rebuild if intent.range.starts_anew else self._merge
        for left in reversed(range(TRIES)):
            try:
                return step(intent)
            except TableMovedError:
                if not left:
                    raise
        raise AssertionError("unreachable")

    def _rebuild(self, intent: Intent) -> Result:
        script = self._bind(intent, SILVER)
        passing = self._passing()
        noted = {PASSED: passing, FILTERED: self._read(intent.range) - passing}
        staging = Staging(self._session, intent, noted)
        with staging.open():
            sql(self._session, script.one("rebuild"))
        return self._published(intent, staging.staged(self._silver))

    def _merge(self, intent: Intent) -> Result:
        script = self._bind(intent, SILVER_INCREMENTAL)
        sql(self._session, script.one("classify"))
        view = f"{self._target.name}_classified"
        # Once the merge has begun, silver is no longer what the rows were compared with; and a
        # view over a plan that still names the table cannot be the source of a MERGE in Spark 4.1.
        classified = self._session.table(view).localCheckpoint()
        classified.createOrReplaceTempView(view)
        outcomes = self._classes(intent, classified)
        staging = Staging(self._session, intent, outcomes)
        with staging.open():
            sql(self._session, self._merge_statement(script, outcomes))
        return self._published(intent, staging.staged(self._silver))

    def _merge_statement(self, script: Script, outcomes: Mapping[str, int]) -> str:
        if outcomes[KEPT] or outcomes[REPLACED]:
            return script.one("merge")
        # Nothing changes, but the commit still notes how far bronze was seen.
        return f"INSERT INTO {self._target.silver} SELECT * FROM {self._target.silver} WHERE FALSE"

    def _classes(self, intent: Intent, classified: DataFrame) -> dict[str, int]:
        counted = {
            str(r["outcome"]): int(r["count"])
            for r in classified.groupBy("outcome").count().collect()
        }
        kept, replaced = counted.get(KEPT, 0), counted.get(REPLACED, 0)
        passing = self._passing()
        return {
            KEPT: kept,
            REPLACED: replaced,
            DUPLICATE: passing - kept - replaced,
            FILTERED: self._read(intent.range) - passing,
        }

    def _bind(self, intent: Intent, file: str) -> Script:
        script = self._target.scripts.of(intent.revisions[0], file)
        self._source(intent.range).createOrReplaceTempView(f"{self._target.name}_bronze")
        for statement in script.named("view"):
            sql(self._session, statement)
        return script

    def _source(self, range_: Range) -> DataFrame:
        reader = self._session.read.format("iceberg")
        if range_.starts_anew:
            return reader.option("versionAsOf", str(range_.end[SNAPSHOT])).load(self._target.bronze)
        return reader.options(
            **{
                "start-snapshot-id": str(range_.start[SNAPSHOT]),
                "end-snapshot-id": str(range_.end[SNAPSHOT]),
            }
        ).load(self._target.bronze)

    def _passing(self) -> int:
        return self._session.table(f"{self._target.name}_clean").count()

    def _read(self, range_: Range) -> int:
        """Rows in the range, as the snapshots themselves tell."""
        table = self._bronze.look()
        end = table.snapshot(range_.end[SNAPSHOT])
        if range_.starts_anew:
            return end.total if end else 0
        added = 0
        while end is not None and end.id != range_.start[SNAPSHOT]:
            added += end.added if end.operation == "append" else 0
            end = table.snapshot(end.parent) if end.parent is not None else None
        return added

    def _published(self, intent: Intent, staged: Snapshot) -> Result:
        self._protocol.faults.at(Point.AFTER_STAGING)
        self._protocol.still_mine()
        self._silver.publish(staged)
        self._protocol.faults.at(Point.AFTER_PUBLISH)
        result = self.account(intent)
        if result is None:
            raise OperationError(f"{self._silver.name} lost the commit that was just published")
        return result


def account_silver(silver: ManagedTable, intent: Intent) -> Result | None:
    """What became of a range, from silver's own commit of it."""
    commit = silver.commit_of(intent)
    if commit is None:
        return None
    outcomes = dict(commit.marker.outcomes or {})
    if PASSED in outcomes:
        # How many of those that passed were duplicates is known only once the table is written.
        kept = commit.snapshot.added
        outcomes = {KEPT: kept, DUPLICATE: outcomes[PASSED] - kept, FILTERED: outcomes[FILTERED]}
    snapshots = {silver.name: commit.snapshot.id}
    return Result(sum(outcomes.values()), outcomes, snapshots, commit.marker.revisions)
