"""Going on without records that expired before they were read: a batch that has no record.

A person decides it. The range is announced, committed and settled like any other, so that the ledger
names what is missing, and no later batch can be taken for one that skips.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import TYPE_CHECKING

from headgate.core.engine.context import RunContext
from headgate.core.engine.engine_checkpoint import Checkpoint
from headgate.core.engine.faults import Point
from headgate.core.engine.group import GroupOffsetsOf
from headgate.core.engine.progress import RunProgress
from headgate.core.engine.protocol import BatchProtocol, Result
from headgate.core.engine.refusals import stage
from headgate.core.engine.resume import goes_on_at, repair_checkpoint
from headgate.core.engine.topic_target import TopicTarget
from headgate.core.kafka.expiry import expired
from headgate.core.kafka.followed import Followed
from headgate.core.lake.iceberg import ManagedTable, nothing
from headgate.core.lake.reach import Reached, topic_reached
from headgate.core.ledger.store_model import ACCEPTED_GAP, Intent, Range
from headgate.errors import BatchRefusedError, UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ACCEPT_GAP = "accept-gap"


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


def gap_range(topic: Followed, next_: Mapping[str, int] | None, job: str) -> Range:
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
