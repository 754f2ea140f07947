"""One batch of a topic under a rule set: rows are judged and staged, then published in order and accounted for.

Order of publication: dead letters, partials, keys of `unique` rules, results. Results come last, so their
commit says that the batch is whole; `QualityTarget.account` reads the outcome of a batch back from the
commits of its tables.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from headgate.conditions.literals import spark_literal
from headgate.config.settings import Settings
from headgate.core.engine.batch import BatchProtocol, Point, Result, TopicTarget, span
from headgate.core.engine.recovery import RecoveredRows, recover_target
from headgate.core.engine.staging import (
    RecordCounter,
    bind_once,
    publish_letters,
    publish_once,
    stage,
)
from headgate.core.lake.dead_letters import send_dead_letters
from headgate.core.lake.spark import Snapshot, sql
from headgate.core.lake.table import Committed, ManagedTable, Reached, topic_reached
from headgate.core.ledger.model import Intent, Judged, canonical
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.ledger.ranges import is_rebuild
from headgate.core.ledger.windows import JudgedRows
from headgate.core.metrics.windows import earlier, later
from headgate.core.sql.fragments import DEAD_LETTERS, job_name
from headgate.core.sql.script import Script
from headgate.errors import BatchRefusedError, OperationError
from headgate.quality.compile.tables import QUALITY, SourceNames
from headgate.quality.job.windows import Partials
from headgate.quality.revision import Revisions, RulesRevision, dq_table
from headgate.quality.spec.loader import table_names

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


ACCEPTED, DEAD_LETTER, REFUSED, TOMBSTONE = "accepted", "dead_letter", "refused", "tombstone"


@dataclass(frozen=True)
class QualityTarget(TopicTarget):
    """`table` holds the results: one row for each judged record."""

    name: str
    revisions: Revisions
    has_keys: bool = False

    @property
    def partials(self) -> str:
        return dq_table("partials", self.name)

    @property
    def keys(self) -> str:
        return dq_table("keys", self.name)

    @property
    def before(self) -> tuple[str, ...]:
        return (DEAD_LETTERS, self.partials, *([self.keys] if self.has_keys else []))

    def account(self, session: SparkSession, intent: Intent) -> Result | None:
        """The partials' commit says what became of the records; a gap has results alone."""
        results = ManagedTable(session, self.table).commit_of(intent)
        if results is None:
            return None
        partials = ManagedTable(session, self.partials).commit_of(intent)
        outcomes = (partials.marker.outcomes if partials else None) or {ACCEPTED: 0}
        rows = outcomes.get(ACCEPTED, 0) + outcomes.get(DEAD_LETTER, 0)
        if not is_rebuild(intent.range) and rows != results.snapshot.added:
            raise BatchRefusedError(
                f"a batch of {intent.job} does not add up",
                why=f"{results.snapshot.added} rows in {self.table}, but {dict(outcomes)} with its partials",
                fix="compare the two commits: headgate ledger show",
            )
        snapshots = self._snapshots(session, intent, results)
        extras = (JudgedRows(self._judged(session, intent)),) if partials else ()
        return Result(
            sum(outcomes.values()), outcomes, snapshots, results.marker.revisions, extras=extras
        )

    def _judged(self, session: SparkSession, intent: Intent) -> Judged:
        return Partials(session, self.partials).judged(intent)

    def _snapshots(
        self, session: SparkSession, intent: Intent, results: Committed
    ) -> dict[str, int]:
        """The batch's commits, in its table and beside it."""
        others = (self._snapshot(session, name, intent) for name in self._beside(session))
        return {self.table: results.snapshot.id, **{n: i for n, i in others if i is not None}}

    def _beside(self, session: SparkSession) -> tuple[str, ...]:
        """With the keys of a stream that has taken over its first rule of uniqueness since it began."""
        keys = not self.has_keys and ManagedTable(session, self.keys).exists()
        return (*self.before, *([self.keys] if keys else []))

    def _snapshot(self, session: SparkSession, name: str, intent: Intent) -> tuple[str, int | None]:
        found = ManagedTable(session, name).commit_of(intent)
        return name, found.snapshot.id if found else None


def table_target(
    session: SparkSession, settings: Settings, store: OpsStore, name: str
) -> QualityTarget:
    """The target of a rule table's job as its tables tell it, without topics."""
    keys = session.catalog.tableExists(dq_table("keys", name))
    job, table = job_name(QUALITY, name), dq_table("results", name)
    return QualityTarget(job, table, "", "", name, Revisions(store, settings), keys)


def recover_rule_tables(
    session: SparkSession, settings: Settings, store: OpsStore
) -> Iterator[RecoveredRows]:
    """The ledger rows of each declared rule table whose results are not those of a pair."""
    for name in table_names(settings.root):
        if not session.catalog.tableExists(dq_table("states", name)):
            yield recover_target(session, table_target(session, settings, store, name))


DEAD = f"dq_outcome = '{DEAD_LETTER}'"


class QualityBatch:
    """The work of one batch, as the protocol asks for it."""

    def __init__(self, frame: DataFrame, target: QualityTarget, protocol: BatchProtocol) -> None:
        self._session: SparkSession = frame.sparkSession
        self._frame, self._target, self._protocol = frame, target, protocol
        self._counter = RecordCounter.of_job(frame, protocol.store, target.job)
        self._results = ManagedTable(self._session, target.table)
        self._partials = ManagedTable(self._session, target.partials)

    def reached(self, intent: Intent) -> Reached | None:
        return topic_reached(self._results, self._protocol.store, intent.job)

    def account(self, intent: Intent) -> Result | None:
        return self._target.account(self._session, intent)

    def write(self, intent: Intent) -> Result:
        rules = self._target.revisions.of(intent.revisions[0])
        script = self._target.revisions.script(intent.revisions[0])
        # Of rows that are kept in memory Spark may report no observation.
        records = self._frame if reads_again(rules) else self._counter.observed()
        self._bind(intent, script, rules, records)
        with kept(self._session, rules):
            staged = self._judge(intent, script, rules)
            outcomes = self._outcomes(intent, staged, rules)
            partials = stage(self._partials, intent, script.one("partials"), outcomes)
            keys = self._stage_keys(intent, script, rules)
        self._refuse(intent, script, rules, staged, outcomes)
        publish_once(self._partials, intent, partials)
        self._protocol.faults.at(Point.AFTER_PARTIALS)
        if keys is not None:
            publish_once(*keys)
            self._protocol.faults.at(Point.AFTER_KEYS)
        return self._protocol.published(self, intent, lambda: self._results.publish(staged))

    def _judge(self, intent: Intent, script: Script, rules: RulesRevision) -> Snapshot:
        """The results staged, and what was staged bound as the rows to count."""
        self._protocol.faults.during(Point.MID_WRITE, self._results.write_begun)
        staged = stage(self._results, intent, script.one("accept"))
        self._protocol.faults.at(Point.AFTER_STAGING)
        bind_committed(self._session, script, rules, self._results.appended(staged))
        return staged

    def _bind(
        self, intent: Intent, script: Script, rules: RulesRevision, records: DataFrame
    ) -> None:
        bind_once(self._session, script, {rules.first.bound: records}, intent)
        closed = closed_before(self._protocol, self._session, rules, intent)
        set_batch(self._session, intent, closed)

    def _outcomes(
        self, intent: Intent, staged: Snapshot, rules: RulesRevision
    ) -> Mapping[str, int]:
        """Of the whole batch; an offset without a record (a transaction's) has none."""
        dead = self._results.appended(staged).where(DEAD).count() if may_die(rules) else 0
        found = {ACCEPTED: staged.added - dead, DEAD_LETTER: dead}
        if staged.added != span(intent.range):
            counts = self._counter.count(staged.added, span(intent.range))
            refused = counts.records - counts.tombstones - staged.added
            found |= {REFUSED: refused, TOMBSTONE: counts.tombstones}
        if min(found.values()) < 0:
            raise OperationError(f"a batch of {intent.job} wrote more rows than it read: {found}")
        return {name: n for name, n in found.items() if n or name == ACCEPTED}

    def _stage_keys(
        self, intent: Intent, script: Script, rules: RulesRevision
    ) -> tuple[ManagedTable, Intent, Snapshot] | None:
        if rules.keys is None:
            return None
        table = ManagedTable(self._session, rules.keys)
        return table, intent, stage(table, intent, script.one("keys"))

    def _refuse(
        self,
        intent: Intent,
        script: Script,
        rules: RulesRevision,
        staged: Snapshot,
        outcomes: Mapping[str, int],
    ) -> None:
        """Dead letters first: once the results are published, the batch is wholly accounted for."""
        letters = outcomes.get(REFUSED, 0) + outcomes.get(DEAD_LETTER, 0)
        if not letters:
            return
        self._bind(intent, script, rules, self._frame)
        bind_committed(self._session, script, rules, self._results.appended(staged))
        statement = script.one("refuse")
        publish_letters(self._session, self._protocol, intent, statement, outcomes, letters)
        send_dead_letters(self._session, intent, self._target.bootstrap, self._target.dlq_topic)


def reads_again(rules: RulesRevision) -> bool:
    """Whether more than the results is made from the records."""
    return bool(rules.aggregates) or rules.keys is not None


@contextmanager
def kept(session: SparkSession, rules: RulesRevision) -> Generator[None]:
    """The records as they were parsed, kept in memory where they are read more than once."""
    if not reads_again(rules):
        yield
        return
    frame = session.table(SourceNames(rules.first.view).read).persist()
    try:
        yield
    finally:
        frame.unpersist()


def may_die(rules: RulesRevision) -> bool:
    """Whether any rule makes dead letters of the rows that it matches."""
    return bool(rules.with_on_fail(DEAD_LETTER))


def bind_committed(
    session: SparkSession, script: Script, rules: RulesRevision, rows: DataFrame
) -> None:
    """What was staged, under the name that the partials count."""
    rows.createOrReplaceTempView(f"dq_committed_{rules.name}")
    for statement in script.named("partial view"):
        sql(session, statement)


def set_batch(session: SparkSession, intent: Intent, closed: datetime | None) -> None:
    """Where the batch comes from, and which windows were closed when it began."""
    text = canonical(
        {
            "source": intent.range.source,
            "start": dict(intent.range.start),
            "end": dict(intent.range.end),
        }
    )
    sql(session, f"SET VARIABLE batch_range = {spark_literal(text)}")
    told = "CAST(NULL AS TIMESTAMP)" if closed is None else spark_literal(closed)
    sql(session, f"SET VARIABLE closed_before = {told}")


def closed_before(
    protocol: BatchProtocol, session: SparkSession, rules: RulesRevision, intent: Intent
) -> datetime | None:
    """Windows that end by then were closed before this batch: the same however often it is tried.

    The watermark has passed them, or there was silence, or a run's end: no window closes while a batch
    is under way. Those that lie ahead of event time say nothing of the others.
    """
    store = protocol.store
    greatest = store.greatest_event_time(intent.job, intent.batch_time)
    if greatest is None:  # the ops store may have been lost since
        greatest = Partials(session, rules.partials).greatest_event_time(intent.batch_time)
    if greatest is None:
        return None
    passed = earlier(greatest, rules.first.watermark)
    last = store.last_closed_window(intent.job, greatest)
    return passed if last is None else max(passed, later(last, rules.window))
