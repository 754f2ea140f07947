"""Job kind `router`: routes one topic to its end or for ever, each batch under the filter set desired at its start.

`take_over` changes the set between two batches, in one transaction with the status of its filters. Includes
recovery: accepting a gap of expired records, and a new checkpoint where it was lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from headgate.core.engine.batch import Result, Work, ledger_row
from headgate.core.engine.checkpoint import Checkpoint, goes_on_at, repair_checkpoint
from headgate.core.engine.recovery import Repaired
from headgate.core.engine.run import GroupOffsetsOf, RunContext, RunProgress
from headgate.core.engine.run_options import TopicRunForm, TopicRunOptions
from headgate.core.engine.stream import read_range
from headgate.core.engine.topic_run import TopicRun, gap_range
from headgate.core.kafka.offsets import Followed, expired
from headgate.core.kafka.topics import Topics, TopicSpec
from headgate.core.lake.spark import create
from headgate.core.lake.table import Reached
from headgate.core.ledger.model import ACCEPTED_GAP, Intent, Progress
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.ledger.ranges import OffsetRange, TopicRange, expect_range
from headgate.core.sql.fragments import DEAD_LETTERS, dead_letter_table
from headgate.errors import (
    BatchRefusedError,
    HeadgateError,
    OperationError,
    UnavailableError,
)
from headgate.filters.router.batch import Means, RouterBatch, RouterTarget, ledger_reached
from headgate.filters.router.job_kinds import dlq_topic_of
from headgate.filters.router.plan import ReplayRequests, World, is_new, judged_or_owed, planned
from headgate.filters.router.sets import FilterSet, FilterSets, OutputTopics
from headgate.filters.router.views import RouterViews
from headgate.filters.store.model import Boundary, RoutedBatch, Seen, Standing, Wanted
from headgate.filters.store.routed import RoutedRows
from headgate.filters.store.routing import RoutingStore

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class RouterGap:
    """The work of a batch whose records are all gone: no filter judged any of them."""

    def __init__(self, store: OpsStore) -> None:
        self._store = store

    def reached(self, intent: Intent) -> Reached | None:
        return ledger_reached(self._store, intent.job)

    def account(self, intent: Intent) -> Result | None:
        return None

    def write(self, intent: Intent) -> Result:
        rows = RoutedRows(RoutedBatch(intent.revisions[0]))
        return Result(0, {}, {}, intent.revisions, extras=(rows,))


def withdraw_expired(store: OpsStore, job: str, topic: Followed) -> None:
    """Give up announced batches that can no longer be read whole."""
    for intent in store.open_intents(job):
        if intent.range.source_id == topic.topic_id and expired(topic, intent.range.start):
            store.withdraw(intent)


def accept_router_gap(
    context: RunContext,
    target: RouterTarget,
    topic: Followed,
    checkpoint: Checkpoint,
    set_id: str,
) -> None:
    """Settle what expired as a batch without a record, and go on behind it."""
    run, store, protocol = context.run, context.store, context.protocol()
    next_ = goes_on_at(topic, ledger_reached(store, run.job), checkpoint.start())
    range_ = gap_range(topic, next_, run.job)
    row = protocol.process(run.job, run.number, range_, (set_id,), ACCEPTED_GAP, RouterGap(store))
    RunProgress(context).batch(row)
    repair_checkpoint(checkpoint, topic, ledger_reached(store, run.job))
    with closing(GroupOffsetsOf(context, target)) as group:
        group.catch_up(topic)


def repair_router(context: RunContext, target: RouterTarget, topic: Followed) -> Repaired:
    """A new checkpoint behind all that is settled or announced; the old one is put aside."""
    store = context.store
    announced: list[Intent] = []
    for intent in store.open_intents(target.job):
        if intent.range.source_id == topic.topic_id:
            announced.append(intent)
            continue
        result = target.account(context.session, intent)
        if result is None:
            store.withdraw(intent)  # its topic is gone, and with it the records
        else:
            store.settle(intent, ledger_row(intent, result), result.extras)
    location = f"{context.settings.checkpoints.rstrip('/')}/{target.job}"
    checkpoint = Checkpoint(context.session, location, topic.names)
    reached = ledger_reached(store, target.job)
    aside, offsets = repair_checkpoint(checkpoint, topic, reached, announced)
    return Repaired(target.job, aside, offsets)


class RouterRun(TopicRun):
    """Takes the micro-batches of one run through the protocol, each under the set that is wanted."""

    def __init__(self, context: RunContext, target: RouterTarget, options: TopicRunOptions) -> None:
        super().__init__(context, target, options)
        self._router, self._routing = target, context.store.part(RoutingStore)
        self._topics = Topics(target.bootstrap)
        self._outputs = OutputTopics(self._topics)
        self._sets = FilterSets(context.store)
        views = RouterViews(context.faults)
        self._means = Means(target, self._sets, views, self._outputs, self._protocol)
        self._replays = ReplayRequests(context.store, target.source)
        self._place: tuple[Followed, Checkpoint] | None = None
        self._generation = -1
        self._set_id = ""

    @property
    def revision(self) -> str:
        return self._set_id

    def _reached(self) -> Reached | None:
        return ledger_reached(self._context.store, self._router.job)

    def adopt_half_done(self, topic: Followed) -> None:
        """Nothing stands beside a table: what is half done has its intent in the store."""
        return

    def accept_gap(self, topic: Followed, checkpoint: Checkpoint) -> None:
        self._place = topic, checkpoint
        withdraw_expired(self._context.store, self._router.job, topic)
        self.finish_open_intents(topic, checkpoint)
        self.take_over()
        accept_router_gap(self._context, self._router, topic, checkpoint, self._set_id)

    def begin(self, topic: Followed, checkpoint: Checkpoint) -> None:
        self._place = topic, checkpoint
        self.take_over()

    def follow(self, topic: Followed) -> None:
        super().follow(topic)
        if self._context.run.mode == "batch":
            self._replays.look()

    def tick(self) -> None:
        try:
            self.take_over()
            self._replays.look()
        except UnavailableError:
            return  # the next tick looks again; whether the broker is away is told elsewhere

    def handle(self, frame: DataFrame, range_: OffsetRange, batch_id: int) -> None:
        self.take_over()
        super().handle(frame, range_, batch_id)

    def _batch(self, frame: DataFrame) -> Work:
        return RouterBatch(frame, self._means, self)

    def _again(self, intent: Intent) -> Work:
        frame = read_range(
            self._context.session, self._router.bootstrap, expect_range(intent.range, TopicRange)
        )
        return RouterBatch(frame, self._means, self, again=True)

    def _gap(self) -> Work:
        return RouterGap(self._context.store)

    def _judged_now(self, intent: Intent) -> Intent:
        """A batch that was announced is judged by the set that it was announced under."""
        return intent

    def take_over(self) -> None:
        """The set that is wanted now judges from the next batch on."""
        generation = self._routing.generation(self._router.source)
        if generation == self._generation:
            return
        self._context.still_mine()
        world, boundary = self._world()
        plan = planned(world)
        try:
            self._set_id = self._routing.take_over(
                self._router.source, plan.members, plan.seen, plan.owed, boundary
            )
        except BatchRefusedError:
            self._context.still_mine()  # most likely another engine has the job by now
            raise
        self._sets.forget_all_but(plan.members)
        self._generation = generation if plan.is_final else -1

    def _world(self) -> tuple[World, Boundary]:
        if self._place is None:
            raise OperationError("the router has not begun to read its topic")
        topic, checkpoint = self._place
        source, id_ = self._router.source, topic.topic_id
        reached = self._reached()
        done: Mapping[str, int] = {}
        if reached is not None and reached.source_id == id_:
            done = reached.end
        start = checkpoint.start()
        wanted = self._routing.wanted(source)
        seen = {one.filter: one for one in self._routing.seen(source)}
        world = World(
            source=source,
            source_id=id_,
            cutover={**(start.offsets if start else topic.begin), **done},
            begin=topic.now(self._topics).begin,
            wanted=wanted,
            seen=seen,
            refused=self._refused(wanted, seen, id_),
            known=lambda filter, within: judged_or_owed(self._routing, filter, source, id_, within),
        )
        return world, Boundary(self._router.job, id_, done)

    def _refused(
        self, wanted: tuple[Wanted, ...], seen: Mapping[str, Seen], source_id: str
    ) -> dict[str, str]:
        """Of the filters to be taken up, those that cannot be, with the reason."""
        new = [one for one in wanted if is_new(one, seen.get(one.filter), source_id)]
        found: dict[str, str] = {}
        for one in new:
            try:
                self._sets.compiled(one.revision, one.content)
            except (HeadgateError, ValueError) as error:
                found[one.filter] = (
                    error.one_line if isinstance(error, HeadgateError) else str(error)
                )
        able = [one for one in new if one.filter not in found]
        if not able:
            return found
        every = self._routing.wanted()
        return found | self._outputs.refused(able, self._router.dlq_topic, every)

    def suspend(self, intent: Intent, set_: FilterSet, why: Mapping[str, str]) -> Intent:
        """Go on without these; each keeps its place and catches up once it is deployed again."""
        seen = {one.filter: one for one in self._routing.seen(self._router.source)}
        bad = [
            replace(
                seen[one.filter],
                revision=one.revision,
                standing=Standing.SUSPENDED,
                cutover=intent.range.start,
                source_id=intent.range.source_id,
                reason=why[one.filter],
                at=None,
            )
            for one in set_.members
            if one.filter in why
        ]
        self._generation = -1
        self._progress.note(f"suspended: {', '.join(sorted(why))}")
        return self._routing.suspend(intent, set_.without(why), bad)


DLQ_PARTITIONS, DLQ_RETENTION_DAYS = 1, 30


def run_router(context: RunContext) -> None:
    """Route the topic to its end, or for ever."""
    # A session of its own: while dead letters are staged, every commit of its session is.
    context = replace(context, session=context.session.newSession())
    target = router_target(context, context.run.subject)
    topic = Followed.one(Topics(target.bootstrap).found(target.source))
    options = TopicRunOptions.of(context.run)
    if options.form is TopicRunForm.REPAIR:
        done = repair_router(context, target, topic)
        words = f"goes on at {dict(done.offsets)}; the old checkpoint is {done.aside}"
        context.report(Progress(words=words))
        return
    prepare(context, target)
    RouterRun(context, target, options).follow(topic)


def router_target(context: RunContext, source: str) -> RouterTarget:
    """Where a job that routes this topic reads and writes."""
    return RouterTarget(
        job=context.run.job,
        table=DEAD_LETTERS,
        dlq_topic=dlq_topic_of(source),
        bootstrap=str(context.settings.need("bootstrap_servers")),
        store=context.store,
        source=source,
    )


def prepare(context: RunContext, target: RouterTarget) -> None:
    """The dead letters' table and topic, where they are not there yet."""
    create(context.session, (text for text in dead_letter_table().split(";") if text.strip()))
    spec = TopicSpec(target.dlq_topic, DLQ_PARTITIONS, DLQ_RETENTION_DAYS)
    Topics(target.bootstrap).create([spec])
