"""Follow topics under the batch protocol: finish what was left open, then batch by batch.

Order of a run: a batch that stands beside the table but not in it is announced again; open intents
are finished with exactly their ranges; the checkpoint is compared with topic and table; then the
query. A gap of expired records that a person accepted is a batch without a record, announced,
committed and settled like any other.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from headgate.core.engine.batch import BatchProtocol, Point, Result, TopicTarget, Work, span
from headgate.core.engine.checkpoint import (
    Checkpoint,
    goes_on_at,
    prepare_checkpoint,
    repair_checkpoint,
    same_offsets,
)
from headgate.core.engine.run import GroupOffsetsOf, RunContext, RunProgress
from headgate.core.engine.run_options import KafkaRunOptions, TopicRunForm
from headgate.core.engine.staging import stage
from headgate.core.engine.stream import Pace, TopicQuery, is_lost_state, read_range
from headgate.core.kafka.offsets import (
    Followed,
    expired,
    is_data_loss,
    refuse_expired,
    refuse_shorter,
)
from headgate.core.kafka.topics import Topics
from headgate.core.lake.commits import intent_of
from headgate.core.lake.table import ManagedTable, Reached, nothing, precedes, topic_reached
from headgate.core.ledger.model import ACCEPTED_GAP, Intent, LedgerRow
from headgate.core.ledger.ranges import OffsetRange, TopicRange, expect_range
from headgate.errors import BatchRefusedError, UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def accept_gap(
    context: RunContext, target: TopicTarget, topic: Followed, checkpoint: Checkpoint
) -> None:
    """Settle what expired as a batch without a record, and go on behind it."""
    run, table = context.run, ManagedTable(context.session, target.table)
    protocol = context.protocol()
    gap = ExpiredGap(context.session, target, protocol)
    gap.withdraw_unreadable(topic)
    next_ = goes_on_at(topic, topic_reached(table, context.store, run.job), checkpoint.start())
    range_ = gap_range(topic, next_, run.job)
    row = protocol.process(run.job, run.number, range_, (run.revision,), ACCEPTED_GAP, gap)
    RunProgress(context).batch(row)
    reached = topic_reached(table, context.store, run.job)
    repair_checkpoint(checkpoint, topic, reached, shape=target.shape)
    with closing(GroupOffsetsOf(context, target)) as group:
        group.catch_up(topic)


def gap_range(topic: Followed, next_: Mapping[str, int] | None, job: str) -> OffsetRange:
    """From where the job goes on to the topic's first offsets, where those are further."""
    if next_ is None or not expired(topic, next_):
        raise UsageError(
            f"no record of {topic.name} expired before {job} read it",
            why="the topic still has all that the table lacks",
            fix=f"headgate job run {job}",
        )
    start = {p: next_.get(p, 0) for p in topic.begin}
    return topic.range(start, {p: max(start[p], begin) for p, begin in topic.begin.items()})


class ExpiredGap:
    """The work of a batch whose records are all gone, as the protocol asks for it."""

    def __init__(self, session: SparkSession, target: TopicTarget, protocol: BatchProtocol) -> None:
        self._session, self._target, self._protocol = session, target, protocol
        self._table = ManagedTable(session, target.table)
        self._before = [ManagedTable(session, name) for name in target.before]

    def withdraw_unreadable(self, topic: Followed) -> None:
        """Give up announced batches of which nothing is written and no longer all can be read."""
        for intent in self._protocol.store.open_intents(self._target.job):
            if intent.is_accepted_gap or intent.range.source_id != topic.topic_id:
                continue
            if self._table.commit_of(intent) is None and expired(topic, intent.range.start):
                self._refuse_half_done(intent)
                self._protocol.store.withdraw(intent)

    def _refuse_half_done(self, intent: Intent) -> None:
        half = [table.name for table in self._before if table.commit_of(intent) is not None]
        if half:
            raise BatchRefusedError(
                f"a batch of {intent.job} stands in {', '.join(half)}, but its rows do not",
                why=f"it begins at {dict(intent.range.start)}, and its records have expired since",
                fix="restore the topic's records, or begin anew with an empty HEADGATE_HOME",
            )

    def reached(self, intent: Intent) -> Reached | None:
        return topic_reached(self._table, self._protocol.store, intent.job)

    def account(self, intent: Intent) -> Result | None:
        return self._target.account(self._session, intent)

    def write(self, intent: Intent) -> Result:
        staged = stage(self._table, intent, nothing(self._table.name))
        self._protocol.faults.at(Point.AFTER_STAGING)
        return self._protocol.published(self, intent, lambda: self._table.publish(staged))


class TopicRun(ABC):
    """Takes the micro-batches of one run through the protocol."""

    def __init__(self, context: RunContext, target: TopicTarget, options: KafkaRunOptions) -> None:
        self._context, self._target, self._options = context, target, options
        trigger = options.trigger_seconds or context.settings.trigger_seconds
        self._pace = Pace(trigger, options.max_offsets_per_batch)
        self._protocol = context.protocol()
        self._progress = RunProgress(context)
        self._group = GroupOffsetsOf(context, target)

    @property
    @abstractmethod
    def revision(self) -> str:
        """The revision that judges the next batch."""

    @abstractmethod
    def _batch(self, frame: DataFrame) -> Work:
        """The work of one batch over these records."""

    def tick(self) -> None:
        """What is to be done now and then between batches; most jobs have nothing."""
        return

    def settled(self, row: LedgerRow | None) -> None:
        """A batch has its outcome; None when it had one already."""
        self._progress.batch(row)

    def follow(self, topic: Followed) -> None:
        """The whole run: what is half done, a gap that was accepted, then the topic."""
        context, target = self._context, self._target
        location = f"{context.settings.checkpoints.rstrip('/')}/{target.job}"
        checkpoint = Checkpoint(context.session, location, topic.names)
        self.adopt_half_done(topic)
        if self._options.form is TopicRunForm.ACCEPT_GAP:
            self.accept_gap(topic, checkpoint)
            return
        try:
            self.read(topic, checkpoint)
        except Exception as error:
            if is_data_loss(error):
                self.refuse_what_is_gone(topic, checkpoint)
            if is_lost_state(error):
                raise checkpoint.damaged("the state that it kept cannot be read") from error
            raise
        finally:
            self._group.close()

    def accept_gap(self, topic: Followed, checkpoint: Checkpoint) -> None:
        """Go on without records that expired unread, as a person has decided."""
        accept_gap(self._context, self._target, topic, checkpoint)

    def begin(self, topic: Followed, checkpoint: Checkpoint) -> None:
        """All that was half done is finished, and the first batch has not begun."""
        return

    def read(self, topic: Followed, checkpoint: Checkpoint) -> None:
        """What a killed run left open, then the topic, to its end or until stopped."""
        context, target = self._context, self._target
        self.finish_open_intents(topic, checkpoint)
        self._follow_accepted_gap(topic, checkpoint)
        prepare_checkpoint(checkpoint, topic, self._reached(), target.job, target.shape)
        self._group.catch_up(topic)
        self.begin(topic, checkpoint)
        query = self._query(topic, checkpoint)
        query.run(
            self.handle, context.run.mode, context.stop, context.waits, context.goes_on, self.tick
        )

    def _query(self, topic: Followed, checkpoint: Checkpoint) -> TopicQuery:
        """The query whose batches are handled; of one topic, its records as they are."""
        context, target = self._context, self._target
        return TopicQuery(context.session, target.bootstrap, topic, checkpoint, self._pace)

    def _reached(self) -> Reached | None:
        table = ManagedTable(self._context.session, self._target.table)
        return topic_reached(table, self._context.store, self._target.job)

    def refuse_what_is_gone(self, topic: Followed, checkpoint: Checkpoint) -> None:
        """Spark missed records: say which have left the topic since it was last looked at."""
        topic = topic.now(Topics(self._target.bootstrap))
        next_ = goes_on_at(topic, self._reached(), checkpoint.start())
        if next_ is not None:
            refuse_shorter(topic, next_, self._target.job)
            refuse_expired(topic, next_, self._target.job)

    def adopt_half_done(self, topic: Followed) -> None:
        """A batch that stands beside the table but not in it, announced again if that was lost."""
        session, job = self._context.session, self._target.job
        rows = ManagedTable(session, self._target.table).committed(job)
        for name in self._target.before:
            found = ManagedTable(session, name).committed(job)
            if found is None or found.marker.range.source_id != topic.topic_id:
                continue
            if rows is None or precedes(rows.marker.range, found.marker.range):
                self._context.store.begin(intent_of(found.marker))
                return

    def finish_open_intents(self, topic: Followed, checkpoint: Checkpoint) -> None:
        """What a killed run announced is done first, with exactly its range."""
        for found in self._context.store.open_intents(self._target.job):
            if found.range.source_id != topic.topic_id:
                continue  # its records are gone; what to do about that is said where it is noticed
            mine = replace(found, run=self._context.run.number)
            if found.is_accepted_gap:
                self._protocol.finish(mine, self._gap())
                continue
            intent = replace(self._judged_now(found), run=mine.run)
            if self._left_to_query(intent, checkpoint):
                continue
            self._progress.begin(span(intent.range))
            self.settled(self._protocol.finish(intent, self._again(intent)))

    def _follow_accepted_gap(self, topic: Followed, checkpoint: Checkpoint) -> None:
        """The run that accepted a gap may have been killed before its checkpoint was behind it."""
        last, start = self._context.store.newest_batches(self._target.job, 1), checkpoint.start()
        if start is None or not last or not last[0].is_accepted_gap:
            return
        gap = last[0].range
        known = checkpoint.last_committed()
        if gap.source_id == topic.topic_id == start.topic_id and same_offsets(gap.start, known):
            repair_checkpoint(checkpoint, topic, self._reached(), shape=self._target.shape)

    def _gap(self) -> Work:
        """The work of a gap that was accepted and not settled."""
        return ExpiredGap(self._context.session, self._target, self._protocol)

    def _left_to_query(self, intent: Intent, checkpoint: Checkpoint) -> bool:
        """Whether the query must do this batch itself, since it keeps state."""
        return False

    def _again(self, intent: Intent) -> Work:
        """The work of a batch that a killed run announced, over its records read again."""
        return self._batch(
            read_range(
                self._context.session,
                self._target.bootstrap,
                expect_range(intent.range, TopicRange),
            )
        )

    def _judged_now(self, intent: Intent) -> Intent:
        """The intent under the revision that wrote for it already, else under this run's."""
        revisions = (self.revision,)
        for name in (self._target.table, *self._target.before):
            commit = ManagedTable(self._context.session, name).commit_of(intent)
            if commit is not None:
                revisions = commit.marker.revisions
                break
        if intent.revisions == revisions:
            return intent
        return self._context.store.amend(intent, revisions)

    def _after(self) -> datetime | None:
        """What a batch's time must be behind, beside this job's last batch; most jobs have nothing."""
        return None

    def handle(self, frame: DataFrame, range_: OffsetRange, batch_id: int) -> None:
        run = self._context.run
        self._progress.begin(span(range_))
        row = self._protocol.process(
            run.job,
            run.number,
            range_,
            (self.revision,),
            batch_id,
            self._batch(frame),
            self._after(),
        )
        self.settled(row)
        self._group.follow(range_)
