"""The job of a reconciled pair: two topics, one query with state, batch by batch."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from datetime import datetime

from pyspark.sql import DataFrame

from headgate.core.engine.context import RunContext
from headgate.core.engine.engine_checkpoint import Checkpoint
from headgate.core.engine.engine_stream import Pace, TopicQuery
from headgate.core.engine.protocol import Work
from headgate.core.engine.resume import repair_checkpoint
from headgate.core.kafka.followed import Followed
from headgate.core.ledger.store_model import Intent, LedgerRow, Range
from headgate.errors import OperationError
from headgate.quality.job.quality_topic import QualityRun
from headgate.reconcile.job.batch import ReconcileBatch, Touched
from headgate.reconcile.job.reconcile_ahead import Ahead, amid_window
from headgate.reconcile.job.reconcile_counts import Hint
from headgate.reconcile.job.reconcile_hooks import hooks
from headgate.reconcile.job.reconcile_moment import Moment
from headgate.reconcile.job.reconcile_states import (
    HINT,
    STATES_HINT,
    bind_sources,
    streaming_states,
)
from headgate.reconcile.job.reconcile_sweep import Sweep, sweep_job
from headgate.reconcile.job.reconcile_target import ReconcileTarget


class ReconcileRun(QualityRun):
    """Takes the micro-batches of both topics through the protocol, each under the deployed revision."""

    def __init__(self, context: RunContext, target: ReconcileTarget, pace: Pace) -> None:
        super().__init__(context, target, pace)
        self._pair = target
        self._sweep = Sweep(context, target)
        self._hooks = (self._sweep, *hooks(context, target))
        self._stream: TopicQuery | None = None
        self._checkpoint: Checkpoint | None = None
        self._told: tuple[int, int] | None = None
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
        self._tell_state()

    def end(self) -> None:
        """Keys that still wait are settled, then windows are closed: each is told once."""
        with ExitStack() as each:  # what one cannot tell keeps no other from telling
            each.callback(super().end)
            for hook in reversed(self._hooks):
                each.callback(hook.ended)

    def tick(self) -> None:
        super().tick()
        self._tell_state()
        for hook in self._hooks:
            hook.tick()

    def settled(self, row: LedgerRow | None) -> None:
        super().settled(row)
        self._tell_state()
        if row is not None:
            for hook in self._hooks:
                hook.settled(row)

    def handle(self, frame: DataFrame, range_: Range, batch_id: int) -> None:
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
            amid_window(self._context.store, self._pair.job, checkpoint.start(), states),
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

    def _tell_state(self) -> None:
        """How much state Spark keeps, for whoever looks at the job."""
        found = self._stream.state() if self._stream is not None else None
        if found is not None and found != self._told:
            self._told = found
            for name, value in zip(("dq_state_rows", "dq_state_bytes"), found, strict=True):
                self._context.store.mark(f"gauge:{name}:{self._pair.job}", str(value))
