"""Two engines at once, and a run that will not die: no row is lost and none is there twice."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

import pytest
from tests.support.bronze_table import MOMENT, append_rows, create_bronze_table, valid_row
from tests.support.dataset_events import events
from tests.support.oracle import expected_bronze, expected_silver
from tests.support.pipeline import TYPES, Interruption, Pipeline
from tests.support.run_requests import REBUILD_SILVER, REPAIR

from headgate.core.engine.batch import Faults, Point
from headgate.core.engine.host import run_here
from headgate.core.engine.lease import NAME, EngineLease
from headgate.core.engine.stream import read_range
from headgate.core.engine.submit import ask_for
from headgate.core.lake.commits import AlreadyPublishedError
from headgate.core.lake.spark import Snapshot
from headgate.core.lake.table import ManagedTable
from headgate.core.ledger.model import Run, RunState
from headgate.core.ledger.ranges import TopicRange
from headgate.errors import ConflictError, LeaseLostError
from headgate.local.process import wait_until
from headgate.pipeline.bronze import BronzeRun, bronze_target

BAD = b"not a record"
LATER = MOMENT + timedelta(minutes=1)


class Duel:
    """Two runs of one bronze job over the same records, each on a session of its own.

    All duels are fought on one pipeline: each over new records, and the whole is checked each time.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        pipeline.produce(events(1, 30))
        self.run = pipeline.process("bronze")
        self.sound, self.bad = 30, 0

    def begin(self) -> None:
        """The records of the next batch."""
        self.pipeline.produce([*events(self.sound, 200, self.sound), BAD])
        self.sound += 200
        self.bad += 1

    def process(
        self, faults: Faults | None = None, still_mine: Callable[[], None] = lambda: None
    ) -> None:
        """The next batch, taken through the protocol by a run that believes to be the only one."""
        context = self.pipeline.context(self.run, faults, still_mine)
        target, topic = bronze_target(context)
        for statement in target.script(self.run.revision).named("table"):
            context.session.sql(statement)
        range_ = TopicRange(
            topic.name,
            topic.topic_id,
            dict(self.pipeline.ledger()[self.bad - 1].range.end),
            {str(partition): end for partition, end in topic.end.items()},
        )
        frame = read_range(context.session, target.bootstrap, range_)
        BronzeRun(context, target).handle(frame, range_, self.bad)

    def check(self) -> None:
        records = self.pipeline.records()
        sound = expected_bronze([r for r in records if r.value != BAD], TYPES)
        assert self.pipeline.bronze() == sound
        assert [letter.value for letter in self.pipeline.dead_letters()] == [BAD] * self.bad
        assert self.pipeline.outcomes() == {"accepted": self.sound, "refused": self.bad}
        on_topic = self.pipeline.dead_letters_on_topic()
        origins = {
            (letter.header("headgate.partition"), letter.header("headgate.offset"))
            for letter in on_topic
        }
        assert len(origins) == self.bad  # it may have been sent twice: its origin tells
        assert len(self.pipeline.ledger()) == self.bad + 1


@pytest.fixture(scope="module")
def duels(new_module_pipeline: Callable[..., Pipeline]) -> Duel:
    return Duel(new_module_pipeline())


@pytest.fixture
def duel(duels: Duel) -> Duel:
    duels.begin()
    return duels


@pytest.mark.parametrize(
    "point",
    [Point.AFTER_INTENT, Point.AFTER_STAGING, Point.AFTER_DEAD_LETTERS, Point.AFTER_PUBLISH],
)
def test_an_old_run_that_wakes_up_late_adds_nothing(duel: Duel, point: Point) -> None:
    interruption = Interruption(point, duel.process)
    duel.process(interruption)
    assert interruption.hits == 1
    duel.check()


def test_of_two_runs_at_the_same_moment_the_table_takes_one(
    duel: Duel, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused: list[AlreadyPublishedError] = []
    both_staged = threading.Barrier(2, timeout=240)
    publish = ManagedTable.publish

    def noting(table: ManagedTable, staged: Snapshot) -> Snapshot:
        try:
            return publish(table, staged)
        except AlreadyPublishedError as error:
            refused.append(error)
            raise

    monkeypatch.setattr(ManagedTable, "publish", noting)
    errors: list[BaseException] = []

    def one() -> None:
        try:
            duel.process(Interruption(Point.AFTER_STAGING, both_staged.wait))
        except BaseException as error:  # told by the main thread
            errors.append(error)

    threads = [threading.Thread(target=one) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(400)
    assert [str(error) for error in errors] == []
    assert refused, "neither was refused: the two never met"
    duel.check()


def test_a_run_that_lost_its_lease_publishes_nothing(duel: Duel) -> None:
    store = duel.pipeline.store
    lease = EngineLease.take(store)
    assert lease is not None
    snapshots = len(duel.pipeline.ledger())

    def take_over() -> None:
        held = store.lease(NAME)
        assert held is not None
        store.release(held)
        assert store.acquire(NAME, "another engine", 60) is not None

    with lease, pytest.raises(LeaseLostError, match="no longer the active one"):
        duel.process(Interruption(Point.AFTER_STAGING, take_over), lease.check)
    assert duel.pipeline.bronze().total() == duel.sound - 200
    assert len(duel.pipeline.ledger()) == snapshots
    duel.process()
    duel.check()


def test_silver_merged_by_two_runs_is_merged_once(pipeline: Pipeline) -> None:
    create_bronze_table(pipeline)
    first = [valid_row(n, n % 3 + 1) for n in range(30)]
    append_rows(pipeline, first)
    pipeline.process("silver")
    # Some keys come again, later: their rows are replaced, which an append would not do.
    again = [
        {**row, "kafka_offset": 100 + n, "kafka_timestamp": LATER}
        for n, row in enumerate(first[:15])
    ]
    second = [*(valid_row(n, n % 3 + 1) for n in range(30, 70)), *again]
    append_rows(pipeline, second)
    run = pipeline.ask_for("silver")
    interruption = Interruption(Point.AFTER_STAGING, lambda: None)

    def once() -> None:
        if interruption.hits == 1:
            pipeline.carry_out(run)

    interruption._act = once
    pipeline.carry_out(run, interruption)
    pipeline.store.move(run.job, run.number, RunState.FINISHED)
    assert interruption.hits == 1  # the table had moved; the other run had made the commit
    merged = pipeline.silver()
    assert merged == expected_silver([*first, *second]).rows
    summed = pipeline.outcomes("silver")
    assert summed["kept"] == merged.total()
    assert summed["replaced"] == 15
    assert sum(summed.values()) == 85
    pipeline.process("silver", request=REBUILD_SILVER)
    assert pipeline.silver() == merged


def test_a_second_command_hands_its_work_to_the_active_engine(pipeline: Pipeline) -> None:
    pipeline.produce(events(1, 10))
    lease = EngineLease.take(pipeline.store)
    assert lease is not None
    with lease:
        assert EngineLease.take(pipeline.store) is None
        command = pipeline.command("job", "run", "bronze")
        run = _wanted(pipeline)
        pipeline.carry_out(pipeline.store.claim(run.job, run.number, lease.holder))
        pipeline.store.move(run.job, run.number, RunState.FINISHED)
        said, talk = command.communicate(timeout=240)
    assert command.returncode == 0, talk
    assert "10 accepted" in talk + said
    assert pipeline.bronze().total() == 10


def _wanted(pipeline: Pipeline) -> Run:
    asked = (RunState.SUBMITTED,)
    there = wait_until(lambda: bool(pipeline.store.runs(states=asked)), 240)
    assert there, "the command asked for nothing"
    return pipeline.store.runs(states=asked)[0]


def test_nobody_works_beside_an_active_engine(pipeline: Pipeline) -> None:
    lease = EngineLease.take(pipeline.store)
    assert lease is not None
    name = f"bronze-{pipeline.name}"
    run = ask_for(pipeline.settings, pipeline.store, name, "batch")
    with lease:
        with pytest.raises(ConflictError, match="another engine became active"):
            run_here(pipeline.settings, pipeline.store, run, lambda run: None)
        with pytest.raises(ConflictError, match="already SUBMITTED in another form"):
            ask_for(pipeline.settings, pipeline.store, name, "batch", REPAIR)
    with suppress(ConflictError):
        pipeline.store.move(run.job, run.number, RunState.CANCELED)
