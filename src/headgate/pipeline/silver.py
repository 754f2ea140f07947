"""Job kind `silver`: filter, cast, rename and deduplicate bronze rows, once or following bronze.

A step is a rebuild from one snapshot of bronze, or a merge of the rows between two snapshots.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headgate.core.engine.batch import BatchProtocol, Point, Result
from headgate.core.engine.run import RunContext, RunProgress
from headgate.core.lake.commits import moved, until_unmoved, writing_to
from headgate.core.lake.spark import IcebergTable, Snapshot, create, sql
from headgate.core.lake.table import ManagedTable, Reached, Staging, fence, nothing
from headgate.core.ledger.model import ACTIVE, Intent, Run
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.ledger.ranges import Range, TableRange, expect_range, is_rebuild
from headgate.core.sql.fragments import job_name, table_name, view_stem
from headgate.core.sql.script import Script
from headgate.errors import UnavailableError
from headgate.pipeline.columns import as_now, fit_silver
from headgate.pipeline.compile.dataset import SILVER, SILVER_INCREMENTAL
from headgate.pipeline.job_kinds import SilverRunForm, SilverRunOptions
from headgate.pipeline.revision import Scripts, fetch

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
    scripts: Scripts
    bronze: str
    silver: str


def silver_target(context: RunContext) -> SilverTarget:
    revision = fetch(context.store, context.run.revision)
    return SilverTarget(
        job=context.run.job,
        name=view_stem(revision.name),
        scripts=Scripts(context.store, context.settings),
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

    def _source(self, intent: Intent) -> DataFrame:
        """The bronze rows of the batch."""
        read = expect_range(intent.range, TableRange)
        reader = self._session.read.format("iceberg")
        if read.first is None:
            rows = reader.option("versionAsOf", str(read.last)).load(self._target.bronze)
            return as_now(self._bronze, rows, read.last)
        snapshots = {"start-snapshot-id": str(read.first), "end-snapshot-id": str(read.last)}
        return reader.options(**snapshots).load(self._target.bronze)

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
        read = expect_range(range_, TableRange)
        end = table.snapshot(read.last)
        if read.first is None:
            return end.total if end else 0
        added = 0
        while end is not None and end.id != read.first:
            added += end.added if end.operation == "append" else 0
            end = table.snapshot(end.parent) if end.parent is not None else None
        return added

    def _stage(self, intent: Intent) -> Snapshot:
        return self._rebuild(intent) if is_rebuild(intent.range) else self._merge(intent)

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
        self._source(intent).createOrReplaceTempView(f"{self._target.name}_bronze")
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


POLL_SECONDS = 0.5


class EmptyBronzeError(UnavailableError):
    """There is nothing to make silver from; another try without bronze would not help."""

    code, retryable = "HG-8002", False


@dataclass(frozen=True)
class Next:
    """The rows that silver takes next; `words` say why it is made anew, where that is no matter of course."""

    range: TableRange
    words: str = ""


def run_silver(context: RunContext) -> None:
    """Bring silver up to bronze's current snapshot, once or whenever there is a new one."""
    silver = SilverRun(context)
    silver.finish_open_intents()
    if context.run.mode == "streaming":
        silver.follow()
    else:
        silver.catch_up(SilverRunOptions.of(context.run).form)


class SilverRun:
    """Takes the steps of one run, all under the run's revision."""

    def __init__(self, context: RunContext) -> None:
        self._context = context
        self._target = silver_target(context)
        # A session of its own: while a step is staged, every commit of its session is.
        self._session = context.session.newSession()
        script = self._target.scripts.of(context.run.revision, SILVER)
        create(self._session, script.named("table"))
        revision = fetch(context.store, context.run.revision)
        fit_silver(self._session, revision)
        self._protocol, self._progress = context.protocol(), RunProgress(context)
        self._steps = len(context.store.ledger(context.run.job))

    def finish_open_intents(self) -> None:
        """What a killed run announced is done first, unless its bronze or its revision is gone."""
        for intent in self._context.store.open_intents(self._target.job):
            revision = self._context.run.revision
            if not is_outdated(self._session, self._target, revision, intent) or not give_up(
                ManagedTable(self._session, self._target.silver), self._context.store, intent
            ):
                self._progress.batch(self._protocol.finish(intent, self._batch()))

    def catch_up(self, form: SilverRunForm) -> None:
        bronze = bronze_of(self._session, self._target)
        if bronze is None:
            raise EmptyBronzeError(
                f"{self._target.bronze} has no rows yet",
                fix="run bronze first: make process-bronze",
            )
        self._take(bronze, form)

    def follow(self) -> None:
        """One step for each new state of bronze, until the run is stopped."""
        stop, seen = self._context.stop, None
        while not stop.is_set():
            bronze = bronze_of(self._session, self._target)
            current = bronze.current() if bronze else None
            if bronze is None or current is None or current.id == seen:
                self._context.goes_on()
                stop.wait(POLL_SECONDS)
                continue
            seen = self._take(bronze, SilverRunForm.AUTO).last
            # Under a steady load bronze is never seen unchanged: a step done is a sign as good.
            self._context.goes_on()

    def _take(self, bronze: IcebergTable, form: SilverRunForm) -> TableRange:
        """One step up to this state of bronze."""
        run = self._context.run
        found = next_range(self._session, self._target, bronze, run.revision, form)
        words = [found.words, bronze_behind(self._context.store, run)]
        self._progress.note("; ".join(part for part in words if part))
        self._steps += 1
        work = self._batch()
        self._progress.begin(work.rows(found.range))
        row = self._protocol.process(
            run.job, run.number, found.range, (run.revision,), self._steps, work
        )
        self._progress.batch(row)
        return found.range

    def _batch(self) -> SilverBatch:
        return SilverBatch(self._session, self._target, self._protocol)


def bronze_behind(store: OpsStore, run: Run) -> str:
    """That bronze still reads under another declaration: what is new in this one has no values yet."""
    bronze = store.latest(job_name("bronze", run.subject))
    if bronze is None or bronze.state not in ACTIVE or bronze.revision == run.revision:
        return ""
    return (
        f"{bronze.job} still reads under another revision, new columns stay NULL:"
        f" headgate job restart {bronze.job}"
    )


def bronze_of(session: SparkSession, target: SilverTarget) -> IcebergTable | None:
    """Bronze as it is now; None before its first row."""
    table = ManagedTable(session, target.bronze)
    bronze = table.look() if table.exists() else None
    return bronze if bronze and bronze.current() else None


def is_outdated(session: SparkSession, target: SilverTarget, revision: str, intent: Intent) -> bool:
    """Whether nothing of it is written and its bronze or its revision is no longer the present one."""
    if ManagedTable(session, target.silver).commit_of(intent) is not None:
        return False
    bronze = ManagedTable(session, target.bronze).look()
    known = {snapshot.id for snapshot in bronze.history()}
    read = expect_range(intent.range, TableRange)
    wanted = {read.first, read.last} - {None}
    same = bronze.uuid == intent.range.source_id and intent.revisions == (revision,)
    return not same or not wanted <= known


def give_up(silver: ManagedTable, store: OpsStore, intent: Intent) -> bool:
    """Withdraw an intent after the table has been made to refuse its commit; False if it stands."""
    fence(silver, intent)
    if silver.commit_of(intent) is not None:
        return False
    store.withdraw(intent)
    return True


def next_range(
    session: SparkSession,
    target: SilverTarget,
    bronze: IcebergTable,
    revision: str,
    form: SilverRunForm,
) -> Next:
    """From the bronze snapshot that silver has seen to this one; all of it for a rebuild."""
    current = bronze.current()
    assert current is not None, "asked for only once bronze has rows"
    seen = _seen(ManagedTable(session, target.silver), bronze, target.job, revision)
    if form is SilverRunForm.FULL or isinstance(seen, str):
        words = "rebuilt as asked" if form is SilverRunForm.FULL else str(seen)
        return Next(TableRange(target.bronze, bronze.uuid, None, current.id), words)
    return Next(TableRange(target.bronze, bronze.uuid, seen, current.id))


def _seen(silver: ManagedTable, bronze: IcebergTable, job: str, revision: str) -> int | str:
    """The bronze snapshot that silver holds, or why it must be rebuilt ("" for its first time)."""
    committed = silver.committed(job)
    if committed is None:
        return ""
    if committed.marker.revisions != (revision,):
        return "rebuilt: the declaration has changed"
    if bronze.uuid != committed.marker.range.source_id:
        return "rebuilt: bronze is another table than before"
    seen = expect_range(committed.marker.range, TableRange).last
    if any(seen in (s.id, s.parent) for s in bronze.history()):
        return seen
    return "rebuilt: the bronze snapshot that silver had seen is no longer there"
