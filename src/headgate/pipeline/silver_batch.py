"""One step of silver: a rebuild from a snapshot of bronze, or a merge of the rows between two."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headgate.core.engine.context import RunContext
from headgate.core.engine.faults import Point
from headgate.core.engine.protocol import BatchProtocol, Result
from headgate.core.lake.conflicts import moved, until_unmoved, writing_to
from headgate.core.lake.iceberg import ManagedTable, Staging, nothing
from headgate.core.lake.jvm import Snapshot
from headgate.core.lake.reach import Reached
from headgate.core.lake.statements import sql
from headgate.core.ledger.store_model import SNAPSHOT, Intent, Range
from headgate.core.sql.compile_fragments import table_name, view_stem
from headgate.core.sql.compile_script import Script
from headgate.pipeline import declaration
from headgate.pipeline.columns import as_now
from headgate.pipeline.compile.compile_dataset import SILVER, SILVER_INCREMENTAL

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KEPT, REPLACED, DUPLICATE, FILTERED = "kept", "replaced", "duplicate", "filtered"
# A row that a backfill has brought before the merge came to it.
BACKFILLED = "backfilled"
# In the marker of a rebuild: rows that passed the filters, before the duplicates are left out.
PASSED = "passed"


@dataclass(frozen=True)
class SilverTarget:
    """Where the rows come from and go to."""

    job: str
    name: str
    scripts: declaration.Scripts
    bronze: str
    silver: str


def silver_target(context: RunContext) -> SilverTarget:
    revision = declaration.fetch(context.store, context.run.revision)
    return SilverTarget(
        job=context.run.job,
        name=view_stem(revision.name),
        scripts=declaration.Scripts(context.store, context.settings),
        bronze=table_name(revision.bronze_table),
        silver=table_name(revision.silver_table),
    )


class SilverWork(ABC):
    """What writing silver has in common, whether all of it, what is new, or some dates."""

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
        return until_unmoved(lambda: self._write(intent))

    def _write(self, intent: Intent) -> Result:
        """One try: what is there already counts, and what was staged on another state does not."""
        base = self._base()
        done = self.account(intent)
        if done is not None:
            return done
        staged = self._stage(intent)
        if staged.parent != base:
            raise moved(self._silver.name)
        return self._published(intent, staged)

    @abstractmethod
    def _stage(self, intent: Intent) -> Snapshot:
        """Write the rows of the range under the marker of this intent, not yet published."""

    def _source(self, range_: Range) -> DataFrame:
        reader = self._session.read.format("iceberg")
        if range_.starts_anew:
            snapshot = range_.end[SNAPSHOT]
            rows = reader.option("versionAsOf", str(snapshot)).load(self._target.bronze)
            return as_now(self._bronze, rows, snapshot)
        return reader.options(
            **{
                "start-snapshot-id": str(range_.start[SNAPSHOT]),
                "end-snapshot-id": str(range_.end[SNAPSHOT]),
            }
        ).load(self._target.bronze)

    def _base(self) -> int | None:
        """The state of silver that rows are compared with."""
        found = self._silver.look().current()
        return found.id if found else None

    def _staged(self, statement: str, staging: Staging) -> Snapshot:
        with staging.open(), writing_to(self._silver.name):
            sql(self._session, statement)
        staged = staging.staged(self._silver)
        self._protocol.faults.at(Point.AFTER_STAGING)
        return staged

    def _published(self, intent: Intent, staged: Snapshot) -> Result:
        return self._protocol.published(self, intent, lambda: self._silver.fast_forward(staged))


class SilverBatch(SilverWork):
    """A rebuild, or a merge of what is new."""

    def rows(self, range_: Range) -> int:
        """Rows in the range, as the snapshots themselves tell; rewritten files bring no row."""
        table = self._bronze.look()
        end = table.snapshot(range_.end[SNAPSHOT])
        if range_.starts_anew:
            return end.total if end else 0
        added, start = 0, range_.start[SNAPSHOT]
        while end is not None and end.id != start:
            added += end.added if end.operation == "append" else 0
            end = table.snapshot(end.parent) if end.parent is not None else None
        return added

    def _stage(self, intent: Intent) -> Snapshot:
        return self._rebuild(intent) if intent.range.starts_anew else self._merge(intent)

    def _rebuild(self, intent: Intent) -> Snapshot:
        script = self._bind(intent, SILVER)
        passing = self._passing()
        noted = {PASSED: passing, FILTERED: self.rows(intent.range) - passing}
        return self._staged(script.one("rebuild"), Staging(self._session, intent, noted))

    def _merge(self, intent: Intent) -> Snapshot:
        script = self._bind(intent, SILVER_INCREMENTAL)
        self._fixed("newest")
        for step in ("bounds", "classify"):
            for statement in script.named(step):
                sql(self._session, statement)
        # Once the merge has begun, silver is no longer what the rows were compared with; and a
        # view over a plan that still names the table cannot be the source of a MERGE in Spark 4.1.
        outcomes = self._classes(intent, self._fixed("classified"))
        staging = Staging(self._session, intent, outcomes)
        return self._staged(self._merge_statement(script, outcomes), staging)

    def _fixed(self, view: str) -> DataFrame:
        """The view's rows as they are now, in the view's place."""
        name = f"{self._target.name}_{view}"
        rows = self._session.table(name).localCheckpoint()
        rows.createOrReplaceTempView(name)
        return rows

    def _merge_statement(self, script: Script, outcomes: Mapping[str, int]) -> str:
        if outcomes[REPLACED]:
            return script.one("merge")
        if outcomes[KEPT]:
            return script.one("append")
        # Nothing changes, but the commit still notes how far bronze was seen.
        return nothing(self._target.silver)

    def _classes(self, intent: Intent, classified: DataFrame) -> dict[str, int]:
        from pyspark.sql import functions

        counted = classified.groupBy("outcome").agg(
            functions.count("*").alias("keys"), functions.sum("_rows").alias("rows")
        )
        found = {str(r["outcome"]): (int(r["keys"]), int(r["rows"])) for r in counted.collect()}
        told = {name: found.get(name, (0, 0))[0] for name in (KEPT, REPLACED, BACKFILLED)}
        passing = sum(rows for _, rows in found.values())
        return {
            **told,
            DUPLICATE: passing - sum(told.values()),
            FILTERED: self.rows(intent.range) - passing,
        }

    def _bind(self, intent: Intent, file: str) -> Script:
        script = self._target.scripts.of(intent.revisions[0], file)
        self._source(intent.range).createOrReplaceTempView(f"{self._target.name}_bronze")
        for statement in script.named("view"):
            sql(self._session, statement)
        return script

    def _passing(self) -> int:
        return self._session.table(f"{self._target.name}_clean").count()


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
    # Silver's commits are in one order with a backfill's, whenever their ledger rows are written.
    at = commit.snapshot.at
    return Result(sum(outcomes.values()), outcomes, snapshots, commit.marker.revisions, at)
