"""The router of one topic: batch by batch, each under the set of filters that is wanted when it begins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import DataFrame

from headgate.core.engine.context import RunContext
from headgate.core.engine.engine_checkpoint import Checkpoint
from headgate.core.engine.engine_stream import Pace, read_range
from headgate.core.engine.jobs_topic_run import TopicRun
from headgate.core.engine.protocol import Work
from headgate.core.kafka.engine_topics import Topics
from headgate.core.kafka.followed import Followed
from headgate.core.lake.reach import Reached
from headgate.core.ledger.store_model import Intent, Range
from headgate.errors import (
    BatchRefusedError,
    HeadgateError,
    OperationError,
    UnavailableError,
)
from headgate.filters.router.replay_requests import ReplayRequests
from headgate.filters.router.router_batch import Means, RouterBatch
from headgate.filters.router.router_gap import RouterGap, accept_router_gap, withdraw_expired
from headgate.filters.router.router_owed import judged_or_owed
from headgate.filters.router.router_plan import World, is_new, planned
from headgate.filters.router.router_sets import FilterSet, FilterSets
from headgate.filters.router.router_target import RouterTarget, ledger_reached
from headgate.filters.router.router_topics import OutputTopics
from headgate.filters.router.views import RouterViews
from headgate.filters.store.routing_model import Boundary, Seen, Standing, Wanted


class RouterRun(TopicRun):
    """Takes the micro-batches of one run through the protocol, each under the set that is wanted."""

    def __init__(self, context: RunContext, target: RouterTarget, pace: Pace) -> None:
        super().__init__(context, target, pace)
        self._router, self._routing = target, context.store.routing
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

    def handle(self, frame: DataFrame, range_: Range, batch_id: int) -> None:
        self.take_over()
        super().handle(frame, range_, batch_id)

    def _batch(self, frame: DataFrame) -> Work:
        return RouterBatch(frame, self._means, self)

    def _again(self, intent: Intent) -> Work:
        frame = read_range(self._context.session, self._router.bootstrap, intent.range)
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
