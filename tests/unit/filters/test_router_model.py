"""A router without Spark: changes, batches, kills, suspensions and replays in any order, and the proof."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from sqlalchemy import create_engine, text

from headgate.core.ledger.database import HEAD
from headgate.core.ledger.model import Intent, LedgerRow
from headgate.core.ledger.offset_ranges import between, blocks, first, merged, minus
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.ledger.ranges import Range, TopicRange
from headgate.core.ledger.tables import metadata
from headgate.filters.accounting import ranges_of_all
from headgate.filters.router.plan import World, judged_or_owed, left_of, planned
from headgate.filters.store.model import (
    Boundary,
    Member,
    Owing,
    RoutedBatch,
    Seen,
    Standing,
    TopicEnd,
    Wanted,
)
from headgate.filters.store.routed import RoutedRows
from headgate.filters.store.routing import RoutingStore

SOURCE, JOB = "events", "router-events"
FILTERS = st.sampled_from(["one", "two", "three"])


class Clock:
    now = datetime(2025, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


@cache
def empty_database() -> Path:
    path = Path(tempfile.mkdtemp()) / "ops.db"
    engine = create_engine(f"sqlite:///{path}")
    with engine.begin() as db:
        metadata.create_all(db)
        db.execute(text("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)"))
        db.execute(text("INSERT INTO alembic_version VALUES (:head)"), {"head": HEAD})
    engine.dispose()
    return path


class RouterModel(RuleBasedStateMachine):
    """Every step is one that a router, a replay, an operator or a kill can take."""

    walks: ClassVar[int] = 0

    @initialize()
    def begin(self) -> None:
        RouterModel.walks += 1
        self.folder = Path(tempfile.mkdtemp())
        shutil.copy(empty_database(), self.folder / "ops.db")
        self.store = OpsStore.open(f"sqlite:///{self.folder / 'ops.db'}", Clock())
        self.end = {"0": 0, "1": 0}
        self.first = dict(self.end)
        self.topic_id, self.topics = "t1", 1
        self.deployments = 0
        self.set_id = ""
        self.refused: set[str] = set()
        self.begins: dict[str, TopicEnd] = {}
        self.take_over()

    def teardown(self) -> None:
        self.store.close()
        shutil.rmtree(self.folder)

    # What others do

    @rule()
    def add_partition(self) -> None:
        if len(self.end) < 4:
            self.end[str(len(self.end))] = self.first[str(len(self.first))] = 0

    @rule()
    def make_again(self) -> None:
        """The topic is deleted and made again, and the router repaired."""
        self.topics += 1
        self.topic_id, self.end, self.first = f"t{self.topics}", {"0": 0}, {"0": 0}
        for intent in self.store.open_intents(JOB):
            self.store.withdraw(intent)
        self.take_over()

    @rule(n=st.integers(1, 5), partition=st.sampled_from(["0", "1"]))
    def produce(self, n: int, partition: str) -> None:
        if partition in self.end:
            self.end[partition] += n

    @rule(partition=st.sampled_from(["0", "1"]), share=st.floats(0, 1))
    def expire(self, partition: str, share: float) -> None:
        """Only what the router has read: what is lost unread is another story."""
        reached = self.coverage().get(partition, 0)
        if partition not in self.first:
            return
        self.first[partition] = max(self.first[partition], int(reached * share))

    @rule(
        filter=FILTERS, revision=st.integers(0, 2), backfill=st.sampled_from(["none", "earliest"])
    )
    def deploy(self, filter: str, revision: int, backfill: str) -> None:
        self.deployments += 1
        before = self.store.part(RoutingStore).wanted_filter(filter)
        if before is None or before.since is None or before.since.topic_id != self.topic_id:
            since = TopicEnd(SOURCE, self.topic_id, dict(self.end))
            seen = self.store.part(RoutingStore).seen_filter(filter)
            if seen is None or seen.standing is Standing.OFF:
                self.begins[filter] = since
        else:
            since = before.since
        if backfill == "earliest":
            self.begins.pop(filter, None)
        self.store.part(RoutingStore).want(
            Wanted(
                filter,
                SOURCE,
                f"{filter}-{revision}",
                "{}",
                f"out-{filter}",
                f"d{self.deployments}",
                backfill=backfill,
                since=since,
            )
        )

    @rule(filter=FILTERS, paused=st.booleans())
    def pause(self, filter: str, paused: bool) -> None:
        wanted = self.store.part(RoutingStore).wanted_filter(filter)
        if wanted is not None:
            self.store.part(RoutingStore).want(replace(wanted, paused=paused))

    @rule(filter=FILTERS)
    def unwant(self, filter: str) -> None:
        self.store.part(RoutingStore).unwant(filter)
        self.begins.pop(filter, None)

    @rule(filter=FILTERS, refused=st.booleans())
    def spoil(self, filter: str, refused: bool) -> None:
        """Whether the filter can be taken up the next time it is deployed."""
        self.refused = self.refused | {filter} if refused else self.refused - {filter}

    # What the router does

    def settled(self) -> dict[str, int]:
        found = self.store.settled_range(JOB)
        return dict(found.end) if found and found.source_id == self.topic_id else {}

    def coverage(self) -> dict[str, int]:
        return {**dict.fromkeys(self.end, 0), **self.settled()}

    def take_over(self) -> None:
        routing = self.store.part(RoutingStore)
        plan = planned(
            World(
                source=SOURCE,
                source_id=self.topic_id,
                cutover=self.coverage(),
                begin=self.first,
                wanted=routing.wanted(SOURCE),
                seen={one.filter: one for one in routing.seen(SOURCE)},
                refused=dict.fromkeys(self.refused, "it cannot be taken up"),
                known=lambda filter, within: judged_or_owed(
                    routing, filter, SOURCE, self.topic_id, within
                ),
            )
        )
        boundary = Boundary(JOB, self.topic_id, self.settled())
        self.set_id = routing.take_over(SOURCE, plan.members, plan.seen, plan.owed, boundary)

    def settle(self, intent: Intent) -> None:
        range_ = intent.range
        read = sum(end - range_.start.get(p, 0) for p, end in range_.end.items())
        row = LedgerRow(
            None, intent.job, 1, range_, intent.revisions, intent.batch_time, 0, read, read, 0,
            {"unrouted": read}, {}, self.store.part(RoutingStore)._clock(),
        )  # fmt: skip
        self.store.settle(intent, row, (RoutedRows(RoutedBatch(intent.revisions[0])),))

    def finish_open(self, job: str) -> None:
        for intent in self.store.open_intents(job):
            if intent.range.source_id == self.topic_id:
                self.settle(intent)
            else:
                self.store.withdraw(intent)

    def announced(self, range_: Range, job: str, set_id: str) -> Intent:
        at = self.store.part(RoutingStore)._clock()
        return self.store.begin(Intent(None, job, 1, range_, (set_id,), at, 0))

    @rule()
    def tick(self) -> None:
        self.finish_open(JOB)
        self.take_over()

    @rule(
        killed=st.booleans(),
        suspended=st.none() | FILTERS,
        most=st.integers(1, 8),
    )
    def batch(self, killed: bool, suspended: str | None, most: int) -> None:
        self.finish_open(JOB)
        self.take_over()
        start = self.coverage()
        end = {p: min(self.end[p], start[p] + most) for p in start}
        if end == start:
            return
        intent = self.announced(TopicRange(SOURCE, self.topic_id, start, end), JOB, self.set_id)
        members = self.store.part(RoutingStore).members(intent.revisions[0])
        if suspended in {one.filter for one in members}:
            intent = self.suspend(intent, members, str(suspended))
        if not killed:
            self.settle(intent)

    def suspend(self, intent: Intent, members: tuple[Member, ...], filter: str) -> Intent:
        (seen,) = (s for s in self.store.part(RoutingStore).seen(SOURCE) if s.filter == filter)
        bad: Seen = replace(
            seen,
            standing=Standing.SUSPENDED,
            cutover=intent.range.start,
            reason="it raised",
            at=None,
        )
        left = [one for one in members if one.filter != filter]
        return self.store.part(RoutingStore).suspend(intent, left, [bad])

    @rule(filter=FILTERS, killed=st.booleans(), most=st.integers(1, 8))
    def replay(self, filter: str, killed: bool, most: int) -> None:
        job, routing = f"replay-{filter}", self.store.part(RoutingStore)
        self.finish_open(job)
        for owed in routing.owed(filter, (Owing.WAITING,))[:1]:
            seen = routing.seen_filter(filter)
            if seen is None or seen.standing is not Standing.LIVE:
                return
            if owed.source_id != self.topic_id:
                routing.settle_owed(owed, Owing.GIVEN_UP, "made again")
                return
            left = left_of(routing, owed, self.first)
            if not left:
                routing.settle_owed(owed, Owing.DONE)
                return
            ((start, end),) = blocks(first(left, most))
            set_id = routing.keep_set(SOURCE, [Member(filter, seen.revision, f"out-{filter}")])
            intent = self.announced(TopicRange(SOURCE, self.topic_id, start, end), job, set_id)
            if not killed:
                self.settle(intent)

    @rule(filter=FILTERS)
    def replay_fails(self, filter: str) -> None:
        for owed in self.store.part(RoutingStore).owed(filter, (Owing.WAITING,)):
            self.store.part(RoutingStore).settle_owed(owed, Owing.FAILED, "it raised")

    # What must hold

    @invariant()
    def every_offset_is_judged_once_by_whom_it_should_be(self) -> None:
        found = {one.filter: one.breaks for one in ranges_of_all(self.store) if one.breaks}
        assert found == {}

    @invariant()
    def without_a_backfill_nothing_from_before_the_deployment_is_judged(self) -> None:
        for filter, since in self.begins.items():
            history = self.store.part(RoutingStore).history(filter)
            off = [at for at, one in enumerate(history) if one.standing is Standing.OFF]
            spell = history[off[-1] + 1 :] if off else history
            for one in spell:
                if one.source_id == since.topic_id and one.cutover:
                    assert all(one.cutover.get(p, 0) >= end for p, end in since.offsets.items())
            for owed in self.store.part(RoutingStore).owed(filter, (Owing.WAITING,)):
                if owed.source_id == since.topic_id:
                    assert all(start >= since.offsets.get(p, 0) for p, start in owed.start.items())

    @invariant()
    def a_live_filter_has_judged_all_since_its_cutover(self) -> None:
        reached = self.store.part(RoutingStore).reached(JOB).get(self.topic_id, {})
        for one in ranges_of_all(self.store):
            seen = self.store.part(RoutingStore).seen_filter(one.filter)
            if seen is None or seen.standing is not Standing.LIVE:
                continue
            judged = merged(
                (r.partition, r.start, r.end) for r in one.ranges if r.source_id == self.topic_id
            )
            assert minus(between(seen.cutover, reached), judged) == {}


@pytest.mark.parametrize("examples", [12, pytest.param(1_000, marks=pytest.mark.slow)])
def test_whatever_happens_every_filter_judges_every_offset_once(examples: int) -> None:
    from hypothesis.stateful import run_state_machine_as_test

    RouterModel.walks = 0
    run_state_machine_as_test(
        RouterModel,
        settings=settings(
            max_examples=examples,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=[
                HealthCheck.too_slow,
                HealthCheck.data_too_large,
                HealthCheck.filter_too_much,
            ],
            database=None,
        ),
    )
    assert RouterModel.walks >= examples
