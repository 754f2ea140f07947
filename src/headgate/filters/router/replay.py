"""Job kind `replay`: judges the offsets that one filter missed before its cutover, beside live traffic.

Its ranges end where the router's begin: nothing is judged twice, and nothing in between is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from headgate.core.engine.batch import ledger_row, span
from headgate.core.engine.controller import TRIES
from headgate.core.engine.run import RunContext, RunProgress
from headgate.core.engine.stream import explain, read_range
from headgate.core.kafka.offsets import Followed
from headgate.core.kafka.topics import Topics
from headgate.core.ledger.model import Intent
from headgate.core.ledger.offset_ranges import Spans, blocks, first
from headgate.core.ledger.ranges import Range, TopicRange, expect_range
from headgate.errors import LeaseLostError, OperationError, UsageError
from headgate.filters.router.batch import Means, PoisonedFilterError, RouterBatch
from headgate.filters.router.job import prepare, router_target
from headgate.filters.router.plan import left_of
from headgate.filters.router.sets import FilterSet, FilterSets, OutputTopics
from headgate.filters.router.views import RouterViews
from headgate.filters.store.model import Member, Owed, Owing, Seen, Standing
from headgate.filters.store.routing import RoutingStore

MADE_AGAIN = "the topic was deleted and made again since"


def run_replay(context: RunContext) -> None:
    """Judge all that the filter of this run is owed."""
    context = replace(context, session=context.session.newSession())
    try:
        _Replay(context, context.run.subject).work()
    except Exception as error:
        _note_failure(context, error)
        raise


def _note_failure(context: RunContext, error: Exception) -> None:
    """What cannot be judged waits for a person, unless the run is tried again by itself."""
    failure = explain(error)
    again = type(failure) is OperationError and context.failures + 1 < TRIES
    if failure.retryable or again or isinstance(failure, LeaseLostError):
        return
    routing = context.store.part(RoutingStore)
    for owed in routing.owed(context.run.subject, (Owing.WAITING,)):
        routing.settle_owed(owed, Owing.FAILED, failure.one_line)


class _Replay:
    """One filter's way through what it is owed."""

    def __init__(self, context: RunContext, filter: str) -> None:
        self._context, self._filter = context, filter
        self._routing = context.store.part(RoutingStore)
        seen = self._routing.seen_filter(filter)
        if seen is None:
            raise UsageError(
                f"the router has never seen a filter {filter}",
                fix="deploy it: headgate filters deploy",
            )
        self._target = router_target(context, seen.source)
        self._topics = Topics(self._target.bootstrap)
        self._protocol = context.protocol()
        self._sets = FilterSets(context.store)
        views = RouterViews(context.faults)
        outputs = OutputTopics(self._topics)
        self._means = Means(
            self._target, self._sets, views, outputs, self._protocol, unreadable=False
        )
        self._progress = RunProgress(context)
        self._batches = 0

    def work(self) -> None:
        """What a killed run left open, then every range that is owed."""
        prepare(self._context, self._target)
        topic = self._topics.found(self._target.source)
        for intent in self._context.store.open_intents(self._context.run.job):
            mine = replace(intent, run=self._context.run.number)
            if mine.range.source_id != topic.topic_id:
                self._close(mine)
                continue
            self._progress.batch(self._protocol.finish(mine, self._batch(mine.range, again=True)))
        for owed in self._routing.owed(self._filter, (Owing.WAITING,)):
            self._judge(owed)

    def _close(self, intent: Intent) -> None:
        """A batch of a topic that is gone: settled if its dead letters tell of it, else given up."""
        result = self._target.account(self._context.session, intent)
        if result is None:
            self._context.store.withdraw(intent)
        else:
            row = ledger_row(intent, result)
            self._context.store.settle(intent, row, result.extras)

    def _judge(self, owed: Owed) -> None:
        """Batch after batch until nothing is left of it, the filter is halted, or the run is stopped."""
        while not self._context.stop.is_set():
            seen = self._routing.seen_filter(self._filter)
            if seen is None or seen.standing is not Standing.LIVE:
                return
            topic = Followed.one(self._topics.found(self._target.source))
            if topic.topic_id != owed.source_id:
                self._routing.settle_owed(owed, Owing.GIVEN_UP, MADE_AGAIN)
                return
            left = left_of(self._routing, owed, topic.begin)
            if not left:
                self._routing.settle_owed(owed, Owing.DONE)
                return
            self._next(topic, seen, first(left, self._context.settings.max_offsets_per_batch))

    def _next(self, topic: Followed, seen: Seen, spans: Spans) -> None:
        ((start, end),) = blocks(spans)
        range_ = topic.range(start, end)
        member = Member(seen.filter, seen.revision, self._topic_of(seen.revision))
        set_id = self._routing.keep_set(self._target.source, [member])
        run = self._context.run
        self._progress.begin(span(range_))
        row = self._protocol.process(
            run.job, run.number, range_, (set_id,), self._batches, self._batch(range_)
        )
        self._batches += 1
        self._progress.batch(row)

    def _topic_of(self, revision: str) -> str:
        kept = self._context.store.revision(revision)
        if kept is None:
            raise OperationError(f"revision {revision[:12]} of {self._filter} is not in the store")
        return self._sets.compiled(revision, kept.content).topic

    def _batch(self, range_: Range, *, again: bool = False) -> RouterBatch:
        frame = read_range(
            self._context.session, self._target.bootstrap, expect_range(range_, TopicRange)
        )
        return RouterBatch(frame, self._means, self, again=again)

    def suspend(self, intent: Intent, set_: FilterSet, why: Mapping[str, str]) -> Intent:
        """There is no other filter to go on with: the batch is given up, and the offsets wait."""
        self._context.store.withdraw(intent)
        reason = next(iter(why.values()))
        raise PoisonedFilterError(
            f"filter {self._filter} cannot judge what it is owed",
            why=reason,
            fix="mend its document or its topic, and deploy it again",
        )
