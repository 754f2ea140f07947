"""Evaluates one snapshot of an Iceberg table: all rows are judged, and earlier results are replaced."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from headgate.conditions.literals import spark_literal
from headgate.core.engine.batch import Point, Result
from headgate.core.engine.run import RunContext, RunProgress
from headgate.core.engine.staging import bind, publish_once, stage
from headgate.core.lake.commits import moved, until_unmoved, writing_to
from headgate.core.lake.spark import IcebergTable, Snapshot, create, sql
from headgate.core.lake.table import ManagedTable, Reached, Staging
from headgate.core.ledger.model import Intent, LedgerRow
from headgate.core.ledger.ranges import Range, TableRange, expect_range
from headgate.core.sql.fragments import DEAD_LETTERS, table_name
from headgate.core.sql.script import Script
from headgate.declarations.types import STRING
from headgate.errors import DeclarationError, OperationError, UnavailableError
from headgate.quality.compile.columns import misfits
from headgate.quality.job.batch import (
    DEAD_LETTER,
    REFUSED,
    QualityTarget,
    bind_committed,
    set_batch,
)
from headgate.quality.job.topic import count_matched, stop_if_matched
from headgate.quality.job.windows import emitter_of
from headgate.quality.revision import RulesRevision
from headgate.quality.store import RuleStore

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# The snapshot of a table that has none yet.
EMPTY = -1


class SnapshotSource:
    """The table that is judged."""

    def __init__(self, session: SparkSession, rules: RulesRevision) -> None:
        self._session, self._rules = session, rules
        self.name = str(rules.first.iceberg)

    def check_columns(self) -> None:
        """Raise DeclarationError where the table's columns are not as declared."""
        self._look()
        rules = self._rules
        table = rules.rule_set.table(rules.name)
        # The key is a column of the table even where the declaration does not list it.
        declared = {table.pk: STRING, **table.first.types}
        fields = self._session.table(table_name(self.name)).schema.fields
        types = {field.name: field.dataType.simpleString() for field in fields}
        place = f"{rules.name}: {rules.first.side}"
        faults = list(misfits(self.name, place, declared, types))
        if faults:
            raise DeclarationError(faults)

    def range(self) -> TableRange:
        """The current snapshot, as an intent keeps it."""
        table = self._look()
        current = table.current()
        return TableRange(self.name, table.uuid, None, current.id if current else EMPTY)

    def count_rows(self, range_: TableRange) -> int:
        snapshot = self._look().snapshot(range_.last)
        return snapshot.total if snapshot else 0

    def read(self, range_: Range) -> DataFrame:
        """The rows of the snapshot."""
        name, snapshot = table_name(self.name), expect_range(range_, TableRange).last
        if snapshot == EMPTY:
            return self._session.table(name).limit(0)
        reader = self._session.read.format("iceberg")
        return reader.option("versionAsOf", str(snapshot)).load(name)

    def _look(self) -> IcebergTable:
        table = ManagedTable(self._session, table_name(self.name))
        if not table.exists():
            raise UnavailableError(
                f"{self.name}, the source of {self._rules.name}, does not exist",
                fix="run the job that makes it first",
            )
        return table.look()


class SnapshotRun:
    """One evaluation; its intent names the snapshot that it judges."""

    def __init__(self, context: RunContext, target: QualityTarget) -> None:
        self._context, self._target = context, target
        self._revision = context.run.revision
        self._rules = target.revisions.of(self._revision)
        self._source = SnapshotSource(context.session, self._rules)
        self._protocol, self._progress = context.protocol(), RunProgress(context)

    def evaluate(self) -> None:
        """Settle what a killed run has published, then judge the current snapshot if it is another."""
        context, script = self._context, self._target.revisions.script(self._revision)
        self._source.check_columns()
        create(context.session, self._rules.permanent_views(script))
        context.store.part(RuleStore).write_running_revision(context.run.job, self._revision)
        done, range_ = self._settle_published(), self._source.range()
        if done is None or done.range.end != range_.end:
            self._process(range_)
        emitter_of(context, self._rules).close_due(everything=True)

    def _settle_published(self) -> LedgerRow | None:
        """What was only announced is withdrawn: the evaluation after it replaces all that it left."""
        context, done = self._context, None
        for intent in context.store.open_intents(self._target.job):
            if self._target.account(context.session, intent) is None:
                context.store.withdraw(intent)
                continue
            done = self._protocol.finish(replace(intent, run=context.run.number), self._work())
            self._settle(done)
        return done

    def _process(self, range_: TableRange) -> None:
        run = self._context.run
        self._progress.begin(self._source.count_rows(range_))
        row = self._protocol.process(
            run.job, run.number, range_, (self._revision,), run.number, self._work()
        )
        self._settle(row)

    def _settle(self, row: LedgerRow | None) -> None:
        self._progress.batch(row)
        if row is not None:
            emitter_of(self._context, self._rules).close_due(everything=True)
            stop_if_matched(row.job, self._rules, count_matched(self._context.store, row))

    def _work(self) -> SnapshotWork:
        return SnapshotWork(self._context, self._target, self._source)


class SnapshotWork:
    """The work of one evaluation, as the protocol asks for it."""

    def __init__(self, context: RunContext, target: QualityTarget, source: SnapshotSource) -> None:
        self._target, self._source = target, source
        self._session, self._protocol = context.session, context.protocol()
        self._results = ManagedTable(self._session, target.table)
        self._partials = ManagedTable(self._session, target.partials)

    def reached(self, intent: Intent) -> Reached | None:
        """Nothing: each evaluation begins anew."""
        return None

    def account(self, intent: Intent) -> Result | None:
        return self._target.account(self._session, intent)

    def write(self, intent: Intent) -> Result:
        """Run again whole when a table moved under it."""
        return until_unmoved(lambda: self._write(intent))

    def _write(self, intent: Intent) -> Result:
        done = self.account(intent)
        if done is not None:
            return done
        rules = self._target.revisions.of(intent.revisions[0])
        script = self._target.revisions.script(intent.revisions[0])
        bind(self._session, script, {rules.first.bound: self._source.read(intent.range)}, intent)
        set_batch(self._session, intent, None)
        staged = self._replace(self._results, intent, script.one("accept"))
        self._protocol.faults.at(Point.AFTER_STAGING)
        rows = self._session.read.format("iceberg").option("versionAsOf", str(staged.id))
        bind_committed(self._session, script, rules, rows.load(self._results.name))
        outcomes = self._count_outcomes(script)
        self._refuse(intent, script, outcomes)
        self._publish_partials(intent, script, outcomes)
        return self._protocol.published(self, intent, lambda: self._results.fast_forward(staged))

    def _replace(
        self,
        table: ManagedTable,
        intent: Intent,
        statement: str,
        outcomes: Mapping[str, int] | None = None,
    ) -> Snapshot:
        """All rows of the table replaced by the statement's, not yet published."""
        current = table.look().current()
        staging = Staging(self._session, intent, outcomes)
        with staging.open(), writing_to(table.name):
            sql(self._session, statement.replace("INSERT INTO", "INSERT OVERWRITE", 1))
        staged = staging.staged(table)
        if staged.parent != (current.id if current else None):
            raise moved(table.name)
        return staged

    def _count_outcomes(self, script: Script) -> Mapping[str, int]:
        rows = sql(self._session, script.one("outcomes")).collect()
        return {str(row["outcome"]): int(row["n"]) for row in rows if row["n"]}

    def _publish_partials(
        self, intent: Intent, script: Script, outcomes: Mapping[str, int]
    ) -> None:
        if self._partials.commit_of(intent) is None:
            staged = self._replace(self._partials, intent, script.one("partials"), outcomes)
            self._protocol.still_mine()
            self._partials.fast_forward(staged)
        self._protocol.faults.at(Point.AFTER_PARTIALS)

    def _refuse(self, intent: Intent, script: Script, outcomes: Mapping[str, int]) -> None:
        """Dead letters that no earlier evaluation has written: a row has one of a reason."""
        table = ManagedTable(self._session, DEAD_LETTERS)
        if table.commit_of(intent) is None:
            staged = stage(table, intent, new_dead_letters(script.one("refuse"), intent.job))
            most = outcomes.get(REFUSED, 0) + outcomes.get(DEAD_LETTER, 0)
            if staged.added > most:
                why = f"{staged.added:,} letters, and only {most:,} rows that can have one"
                raise OperationError(
                    f"{intent.job} made more dead letters than it refused", why=why
                )
            if not staged.added:
                return
            self._protocol.still_mine()
            publish_once(table, intent, staged)
        self._protocol.faults.at(Point.AFTER_DEAD_LETTERS)


def new_dead_letters(refuse: str, job: str) -> str:
    """The statement that refuses, without what an earlier evaluation has refused for that reason.

    A row of a table has neither offset nor key in its letter: its JSON tells it from others.
    """
    head, select, query = refuse.partition("\nSELECT")
    return f"""{head}
SELECT found.*
FROM ({select.strip()}{query}) AS found
LEFT ANTI JOIN {DEAD_LETTERS} AS earlier
  ON earlier.job = {spark_literal(job)}
  AND found.reason_code <=> earlier.reason_code
  AND found.kafka_value <=> earlier.kafka_value"""
