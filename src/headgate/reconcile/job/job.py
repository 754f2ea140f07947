"""Job kind `reconcile`: two topics, one stateful query, micro-batch by micro-batch.

`ReconcileRun` extends the quality run of one topic with the state of both sides, sweeps between batches and
publishers; `run_reconcile` starts it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from headgate.core.engine.batch import Work
from headgate.core.engine.checkpoint import Checkpoint, repair_checkpoint
from headgate.core.engine.recovery import repair_topic
from headgate.core.engine.run import RunContext
from headgate.core.engine.run_options import TopicRunForm
from headgate.core.engine.stream import TopicQuery
from headgate.core.kafka.offsets import Followed
from headgate.core.kafka.topics import Topics
from headgate.core.lake.spark import create, sql
from headgate.core.lake.table import ManagedTable
from headgate.core.ledger.model import Intent, LedgerRow, Progress
from headgate.core.ledger.ranges import OffsetRange
from headgate.core.metrics.names import STATE_BYTES, STATE_ROWS
from headgate.errors import OperationError
from headgate.quality.job.topic import QualityRun
from headgate.quality.revision import Revisions, RulesRevision
from headgate.reconcile.compile.states import CHANGES, STATES
from headgate.reconcile.job.batch import ReconcileBatch, Touched
from headgate.reconcile.job.cross_window import Ahead, Moment, find_restart_window
from headgate.reconcile.job.publishers import hooks
from headgate.reconcile.job.states import (
    AGGREGATED,
    HINT,
    STATES_HINT,
    bind_sources,
    streaming_states,
)
from headgate.reconcile.job.sweep import Sweep, sweep_job
from headgate.reconcile.job.target import Hint, ReconcileTarget
from headgate.reconcile.job_kind import PairRunOptions
from headgate.reconcile.store import PairStore

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class ReconcileRun(QualityRun):
    """Takes the micro-batches of both topics through the protocol, each under the deployed revision."""

    def __init__(
        self, context: RunContext, target: ReconcileTarget, options: PairRunOptions
    ) -> None:
        super().__init__(context, target, options)
        self._pair = target
        self._sweep = Sweep(context, target)
        self._hooks = (self._sweep, *hooks(context, target))
        self._stream: TopicQuery | None = None
        self._checkpoint: Checkpoint | None = None
        self._published_state: tuple[int, int] | None = None
        self._ahead = Ahead()

    def read(self, topic: Followed, checkpoint: Checkpoint) -> None:
        """State of another shape is left behind: the table of states has all that it held."""
        self._checkpoint = checkpoint
        start = checkpoint.start()
        if start is not None and start.shape != self._pair.shape:
            announced = self._context.store.open_intents(self._pair.job)
            own = [intent for intent in announced if intent.range.source_id == topic.topic_id]
            repair_checkpoint(checkpoint, topic, self._reached(), own, self._pair.shape)
        super().read(topic, checkpoint)

    def begin(self, topic: Followed, checkpoint: Checkpoint) -> None:
        """A sweep that was announced is done before another batch adds to what it looks at."""
        super().begin(topic, checkpoint)
        if not self._context.store.open_intents(self._pair.job):
            self._sweep.finish_open()

    def follow(self, topic: Followed) -> None:
        super().follow(topic)
        self._write_state_gauges()

    def end(self) -> None:
        """Keys that still wait are settled, then windows are closed: each is told once."""
        with ExitStack() as each:  # what one cannot tell keeps no other from telling
            each.callback(super().end)
            for hook in reversed(self._hooks):
                each.callback(hook.ended)

    def tick(self) -> None:
        super().tick()
        self._write_state_gauges()
        for hook in self._hooks:
            hook.tick()

    def settled(self, row: LedgerRow | None) -> None:
        super().settled(row)
        self._write_state_gauges()
        if row is not None:
            for hook in self._hooks:
                hook.settled(row)

    def handle(self, frame: DataFrame, range_: OffsetRange, batch_id: int) -> None:
        touched = Touched(frame, self._hint, self._moment(batch_id), self._ahead)
        batch = self._last = ReconcileBatch(frame.sparkSession, self._pair, self._protocol, touched)
        super().handle(frame, range_, batch_id)
        if not batch.carried_out:
            # The batch was settled before: its state is brought up to it all the same.
            frame.write.format("noop").mode("overwrite").save()

    def _batch(self, frame: DataFrame) -> Work:
        return self._last

    def _after(self) -> datetime | None:
        """What is told of a key later has a later time, whether by a batch or by a sweep."""
        return self._context.store.last_batch_time(sweep_job(self._pair.name))

    def _moment(self, batch_id: int) -> Moment:
        """Rows are dropped by the watermark of the batch before.

        A batch's own is of all that was read before it, and state is let go by it.
        """
        checkpoint, states = self._checkpoint, self._context.session.table(self._pair.states)
        assert checkpoint is not None
        return Moment(
            checkpoint.watermark_of(batch_id - 1),
            checkpoint.watermark_of(batch_id),
            find_restart_window(
                self._context.store.part(PairStore), self._pair.job, checkpoint.start(), states
            ),
        )

    def _hint(self) -> Hint | None:
        if self._stream is None:
            return None
        messages, states = (self._stream.observed(name) for name in (HINT, STATES_HINT))
        if messages is None or states is None:
            return None
        return Hint(*messages, *states)

    def _again(self, intent: Intent) -> Work:
        return ReconcileBatch(self._context.session, self._pair, self._protocol)

    def _left_to_query(self, intent: Intent, checkpoint: Checkpoint) -> bool:
        """The state of the announced batch is made by the query alone; it begins with that batch."""
        if checkpoint.is_new:
            return False
        found = checkpoint.unfinished()
        wanted = (dict(intent.range.start), dict(intent.range.end))
        return found is not None and (dict(found[0]), dict(found[1])) == wanted

    def _query(self, topic: Followed, checkpoint: Checkpoint) -> TopicQuery:
        context, target = self._context, self._pair
        self._stream = TopicQuery(
            context.session, target.bootstrap, topic, checkpoint, self._pace, self._states
        )
        return self._stream

    def _states(self, sources: Mapping[str, DataFrame]) -> DataFrame:
        rules = self.rules
        if rules.limits is None:
            raise OperationError(f"{rules.name} is no reconciled pair")
        bind_sources(sources, {source.side: source.bound for source in rules.sources})
        script = self._pair.revisions.script(self.revision)
        return streaming_states(self._context.session, script, rules.names, rules.limits)

    def _write_state_gauges(self) -> None:
        """Publish how much state Spark keeps, where that has changed."""
        state = self._stream.state() if self._stream is not None else None
        if state is not None and state != self._published_state:
            self._published_state = state
            for metric, value in zip((STATE_ROWS, STATE_BYTES), state, strict=True):
                self._context.store.write_gauge(metric.name, self._pair.job, value)


# Options of the query's own session. A batch without a record would only let go of old state, which
# the next batch does too; and few versions of the state are ever gone back to.
OPTIONS = {
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.minBatchesToRetain": "10",
}


def run_reconcile(context: RunContext) -> None:
    """Judge both topics to their ends, or for ever."""
    # A session of its own: while a batch is staged, every commit of its session is.
    context = replace(context, session=context.session.newSession())
    for name, value in OPTIONS.items():
        context.session.conf.set(name, value)
    revisions = Revisions(context.store, context.settings)
    rules = revisions.of(context.run.revision)
    create(context.session, rules.tables())
    target = reconcile_target(context, rules, revisions)
    fit_columns(ManagedTable(context.session, target.states), STATES)
    fit_columns(ManagedTable(context.session, target.table), CHANGES)
    options, topics = PairRunOptions.of(context.run), Topics(target.bootstrap)
    topic = Followed({side: topics.found(name) for side, name in options.topics.items()})
    if options.form is TopicRunForm.REPAIR:
        done = repair_topic(context, target, topic)
        words = f"goes on at {dict(done.offsets)}; the old checkpoint is {done.aside}"
        context.report(Progress(words=words))
        return
    ReconcileRun(context, target, options).follow(topic)


def reconcile_target(
    context: RunContext, rules: RulesRevision, revisions: Revisions
) -> ReconcileTarget:
    """Where this run reads and writes."""
    settings = context.settings
    if rules.limits is None:
        raise OperationError(
            f"{rules.name} has one source, and nothing to be reconciled with",
            fix=f"headgate job run quality-{rules.name}",
        )
    letters = {rules.topic_of(s, settings): rules.dlq_topic_of(s, settings) for s in rules.sources}
    shape = revisions.script(rules.hash).one(AGGREGATED)
    return ReconcileTarget(
        job=context.run.job,
        table=rules.results,
        dlq_topic=rules.dlq_topic_of(rules.first, settings),
        bootstrap=str(settings.need("bootstrap_servers")),
        name=rules.name,
        revisions=revisions,
        dlq_topics=letters,
        state_shape=hashlib.sha256(shape.encode()).hexdigest()[:16],
    )


def fit_columns(table: ManagedTable, columns: Mapping[str, str]) -> None:
    """Add the columns that a table lacks because it was made before all of them were known."""
    there = {column.name for column in table.look().columns()}
    lacking = [f"{name} {kind}" for name, kind in columns.items() if name not in there]
    if lacking:
        sql(table.session, f"ALTER TABLE {table.name} ADD COLUMNS ({', '.join(lacking)})")
