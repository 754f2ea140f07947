"""Job kind `backfill`: rebuild the silver rows of some dates from bronze, beside running streams."""

from __future__ import annotations

from dataclasses import replace

from headgate.conditions.literals import spark_literal
from headgate.core.engine.batch import Result
from headgate.core.engine.run import RunContext, RunProgress
from headgate.core.lake.spark import Snapshot, sql
from headgate.core.lake.table import ManagedTable, Staging
from headgate.core.ledger.model import Intent, LedgerRow
from headgate.core.ledger.ranges import BackfillRange, Range, expect_range
from headgate.core.sql.fragments import job_name
from headgate.core.sql.script import Script
from headgate.errors import BatchRefusedError
from headgate.pipeline.compile.dataset import SILVER_BACKFILL
from headgate.pipeline.compile.silver import COLUMNS, columns_as
from headgate.pipeline.job_kinds import BackfillRunOptions
from headgate.pipeline.revision import Dates, missing_date
from headgate.pipeline.silver import (
    FILTERED,
    PASSED,
    EmptyBronzeError,
    SilverWork,
    account_silver,
    bronze_of,
    give_up,
    is_outdated,
    silver_target,
)


def run_backfill(context: RunContext) -> None:
    """Rebuild the rows of the dates that were asked for; every other row stays as it is."""
    dates = BackfillRunOptions.of(context.run).dates
    if dates is None:
        raise missing_date()
    backfill = BackfillRun(context, dates)
    backfill.finish_open_intents()
    backfill.process()


class BackfillRun:
    """One run over one range of dates."""

    def __init__(self, context: RunContext, dates: Dates) -> None:
        self._context, self._dates = context, dates
        self._target = silver_target(context)
        self._session = context.session.newSession()
        self._silver = ManagedTable(self._session, self._target.silver)
        self._protocol, self._progress = context.protocol(), RunProgress(context)
        self._work = BackfillBatch(self._session, self._target, self._protocol)

    def finish_open_intents(self) -> None:
        """What a killed run announced is done first, unless it is of other dates or outdated."""
        run, store = self._context.run, self._context.store
        for intent in store.open_intents(run.job):
            if not self._is_mine(intent) and give_up(self._silver, store, intent):
                continue
            mine = replace(intent, run=run.number)
            self._tell(self._protocol.finish(mine, self._work))

    def _is_mine(self, intent: Intent) -> bool:
        revision = self._context.run.revision
        outdated = is_outdated(self._session, self._target, revision, intent)
        return not outdated and dates_of(intent.range) == self._dates

    def process(self) -> None:
        """The dates anew from bronze's current snapshot."""
        run = self._context.run
        refuse_other_revision(self._silver, run.subject, run.revision)
        bronze = bronze_of(self._session, self._target)
        current = bronze.current() if bronze else None
        if bronze is None or current is None:
            raise EmptyBronzeError(f"{self._target.bronze} has no rows", fix="make process-bronze")
        dates = self._dates
        range_ = BackfillRange(
            self._target.bronze, bronze.uuid, None, current.id, dates.first, dates.last
        )
        revisions = (run.revision,)
        self._tell(
            self._protocol.process(run.job, run.number, range_, revisions, run.number, self._work)
        )

    def _tell(self, row: LedgerRow | None) -> None:
        if row is not None:
            self._progress.note(f"{dates_of(row.range)}: {row.net:+,} rows in silver")
        self._progress.batch(row)


def dates_of(range_: Range) -> Dates:
    """The dates that a batch rebuilds."""
    backfill = expect_range(range_, BackfillRange)
    return Dates(backfill.first_date, backfill.last_date)


def refuse_other_revision(silver: ManagedTable, dataset: str, revision: str) -> None:
    """Some dates must not be judged by another revision than the rest."""
    committed = silver.committed(job_name("silver", dataset)) if silver.exists() else None
    if committed is None:
        raise BatchRefusedError(
            f"{silver.name} has no rows yet",
            why="a backfill mends some dates of a table that is there",
            fix="headgate job run silver",
        )
    if committed.marker.revisions != (revision,):
        before = committed.marker.revisions[0][:12]
        raise BatchRefusedError(
            "the declaration has changed since silver was made",
            why=f"silver has revision {before}, declared is {revision[:12]}; some dates must not be"
            " judged by another one than the rest",
            fix="headgate job run silver --full",
        )


class BackfillBatch(SilverWork):
    """The rows of some dates, from one snapshot of bronze."""

    def account(self, intent: Intent) -> Result | None:
        return account_backfill(self._silver, intent)

    def _stage(self, intent: Intent) -> Snapshot:
        dataset = intent.job.partition("-")[2]
        refuse_other_revision(self._silver, dataset, intent.revisions[0])
        script = self._bind(intent)
        read, passed = self._counted("dated"), self._counted("clean")
        staging = Staging(self._session, intent, {PASSED: passed, FILTERED: read - passed})
        return self._staged(script.one("backfill"), staging)

    def _bind(self, intent: Intent) -> Script:
        script = self._target.scripts.of(intent.revisions[0], SILVER_BACKFILL)
        dates = dates_of(intent.range)
        for statement in script.named("dates"):
            sql(self._session, statement)
        for name, day in (("backfill_from", dates.first), ("backfill_to", dates.last)):
            sql(self._session, f"SET VAR {name} = DATE '{day}'")
        self._source(intent).createOrReplaceTempView(f"{self._target.name}_bronze")
        for statement in script.named("view"):
            sql(self._session, statement)
        self._order_columns(script)
        return script

    def _order_columns(self, script: Script) -> None:
        """The table may have its columns in another order: those that came later are at its end."""
        for statement in script.named("columns"):
            sql(self._session, statement)
            view = self._session.table(f"{self._target.name}_newest").columns
            order = columns_as(view, [column.name for column in self._silver.look().columns()])
            sql(self._session, f"SET VAR {COLUMNS} = {spark_literal(order)}")
        for statement in script.named("statement"):
            sql(self._session, statement)

    def _counted(self, view: str) -> int:
        return self._session.table(f"{self._target.name}_{view}").count()


def account_backfill(silver: ManagedTable, intent: Intent) -> Result | None:
    """What became of the bronze rows of the dates, and how many rows silver has gained."""
    result, commit = account_silver(silver, intent), silver.commit_of(intent)
    if result is None or commit is None:
        return None
    return replace(result, net=commit.snapshot.added - commit.snapshot.deleted)
