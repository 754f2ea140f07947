"""The quality job of one topic: follows it batch by batch and switches to a deployed revision between two batches.

A rule with `on_fail: stop` ends the run once its batch is settled. Keys that `unique` rules have seen are kept
in a table, and deleted when neither event time nor arrival can still meet them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from headgate.conditions.literals import spark_literal
from headgate.core.engine.batch import Work
from headgate.core.engine.checkpoint import Checkpoint
from headgate.core.engine.run import RunContext
from headgate.core.engine.run_options import KafkaRunOptions
from headgate.core.engine.topic_run import TopicRun
from headgate.core.kafka.offsets import Followed
from headgate.core.lake.spark import create, sql
from headgate.core.lake.table import SUMMARY, ManagedTable
from headgate.core.ledger.model import LedgerRow, Run, RunState
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.ledger.ranges import OffsetRange
from headgate.core.metrics.names import UNIQUE_KEYS
from headgate.core.metrics.windows import earlier
from headgate.errors import OperationError
from headgate.quality.job.batch import QualityBatch, QualityTarget
from headgate.quality.job.windows import emitter_of
from headgate.quality.revision import STOP, RuleRevision, RulesRevision
from headgate.quality.store import RuleStore

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


# Its commits are no batch of the job: they bring no row.
LETTING_GO = "forget-"


class SeenKeys:
    """The key table of one job."""

    def __init__(self, session: SparkSession, store: OpsStore, job: str) -> None:
        self._session, self._store, self._job = session, store, job
        self._until: datetime | None = None

    def tell(self, rules: RulesRevision) -> None:
        """Note how large the table is, for whoever looks at the job."""
        if rules.keys is not None:
            current = ManagedTable(self._session, rules.keys).look().current()
            keys = current.total if current else 0
            self._store.write_gauge(UNIQUE_KEYS.name, self._job, keys)

    def let_go(self, rules: RulesRevision, greatest: datetime | None, at: datetime) -> None:
        """Delete keys that no row can meet any more; not at every batch, but some at a time.

        Both the event time and the arrival of a key must lie far back: one row that claims to be of
        another century must not make the keys of a moment ago look old.
        """
        if rules.keys is None or rules.horizon is None or greatest is None:
            return
        arrived = earlier(at, kept_for(rules.horizon, rules.first.watermark))
        if self._until is not None and arrived - self._until < rules.horizon / 4:
            return
        until = earlier(greatest, kept_for(rules.horizon, rules.first.watermark))
        old = f"event_time < {spark_literal(until)} AND batch_time < {spark_literal(arrived)}"
        if sql(self._session, f"SELECT 1 FROM {rules.keys} WHERE {old} LIMIT 1").take(1):
            self._delete(rules.keys, old)
        self._until = arrived

    def _delete(self, table: str, old: str) -> None:
        told = f"{SUMMARY}headgate.note"
        self._session.conf.set(told, f"{LETTING_GO}{self._job}")
        try:
            sql(self._session, f"DELETE FROM {table} WHERE {old}")
        finally:
            self._session.conf.unset(told)


def kept_for(horizon: timedelta, watermark: timedelta) -> timedelta:
    """A row that comes as late as a horizon still meets all keys within the horizon before it."""
    return 2 * horizon + watermark


class StoppedByRuleError(OperationError):
    """A rule with `on_fail: stop` matched: the batch is written and settled, and no next one begins."""

    code = "HG-1004"


class QualityRun(TopicRun):
    """Takes the micro-batches of one run through the protocol, each under the deployed revision."""

    def __init__(
        self, context: RunContext, target: QualityTarget, options: KafkaRunOptions
    ) -> None:
        super().__init__(context, target, options)
        self._quality = target
        self._keys = SeenKeys(context.session, context.store, target.job)
        self._revision = ""
        self.take_over()

    @property
    def revision(self) -> str:
        return self._revision

    @property
    def rules(self) -> RulesRevision:
        return self._quality.revisions.of(self._revision)

    def take_over(self) -> None:
        """The revision that was deployed last judges from the next batch on."""
        store, run = self._context.store.part(RuleStore), self._context.run
        deployed = store.deployed_revision(run.subject) or run.revision
        if deployed == self._revision:
            return
        revisions = self._quality.revisions
        rules, script = revisions.of(deployed), revisions.script(deployed)
        create(self._context.session, (*rules.tables(), *rules.permanent_views(script)))
        self._revision = deployed
        self._target = self._quality = with_keys(self._context, self._quality)
        self._emitter = emitter_of(self._context, self.rules)
        store.write_running_revision(run.job, deployed)

    def tick(self) -> None:
        self.take_over()
        self._emitter.close_due()

    def handle(self, frame: DataFrame, range_: OffsetRange, batch_id: int) -> None:
        self.take_over()
        super().handle(frame, range_, batch_id)

    def _batch(self, frame: DataFrame) -> Work:
        return QualityBatch(frame, self._quality, self._protocol)

    def settled(self, row: LedgerRow | None) -> None:
        super().settled(row)
        if row is None:
            return
        try:
            self._emitter.close_due()
            greatest = self._context.store.greatest_event_time(row.job, row.batch_time)
            self._keys.let_go(self.rules, greatest, row.batch_time)
            self._keys.tell(self.rules)
        finally:
            self._stop_if_asked(row)

    def follow(self, topic: Followed) -> None:
        super().follow(topic)
        if self._context.run.mode == "batch" and not self._context.stop.is_set():
            self.end()
        else:
            self._emitter.close_due()

    def end(self) -> None:
        """A batch run has read all there was: that closes all windows, as silence does."""
        self._emitter.close_due(everything=True)

    def read(self, topic: Followed, checkpoint: Checkpoint) -> None:
        """Behind a stop that was told; one that a kill kept from being told comes first."""
        store = self._context.store
        for row in store.newest_batches(self._target.job, 1):
            failed = store.runs(row.job, states=(RunState.FAILED,))
            if not was_told(row, failed) and store.revision(row.revisions[0]) is not None:
                self._stop_if_asked(row)
        super().read(topic, checkpoint)

    def _stop_if_asked(self, row: LedgerRow) -> None:
        rules = self._quality.revisions.of(row.revisions[0])
        stop_if_matched(row.job, rules, count_matched(self._context.store, row))


def was_told(row: LedgerRow, failed: Iterable[Run]) -> bool:
    """Whether a run has ended by the stop that this batch asked for, or by one behind it.

    The run's end tells it, and nothing before it: a run that notes it elsewhere could be killed then.
    """
    stops = [run for run in failed if run.error_code == StoppedByRuleError.code]
    # By time too: after a rebuild the ledger has numbers of runs that the store does not know.
    return any(
        run.number >= row.run or (run.ended_at is not None and run.ended_at >= row.committed_at)
        for run in stops
    )


def stopping(rules: RulesRevision, matched: Mapping[str, int]) -> list[RuleRevision]:
    """The rules with `on_fail: stop` that matched a row."""
    return [rule for rule in rules.with_on_fail(STOP) if matched.get(rule.name)]


def count_matched(store: OpsStore, newest: LedgerRow) -> Mapping[str, int]:
    """The rows that each rule matched in the newest batch of a job."""
    counts = store.newest_rule_counts(newest.job, 1).get(newest.id or 0, ())
    return {count.rule: count.matched for count in counts}


def stop_if_matched(job: str, rules: RulesRevision, matched: Mapping[str, int]) -> None:
    """Raise when a rule that stops the job matched a row of the batch that is settled now."""
    found = stopping(rules, matched)
    if found:
        told = ", ".join(f"{rule.name} on {matched[rule.name]:,} rows" for rule in found)
        raise StoppedByRuleError(
            f"{job} was stopped by a rule: {told}",
            why=f"{found[0].reason}; on_fail is stop, the batch is written and accounted for",
            fix=f"mend the source or the rule, then: headgate job start {job} goes on behind it",
        )


def with_keys(context: RunContext, target: QualityTarget) -> QualityTarget:
    """The target with its key table, where there is one."""
    found = context.session.catalog.tableExists(target.keys)
    return replace(target, has_keys=found)
