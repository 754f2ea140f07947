"""Which jobs are behind, and by how much: the broker is played."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import create_engine

from headgate.core.engine.run_options import TopicRunOptions
from headgate.core.engine.telemetry import LagWatch
from headgate.core.kafka.topics import TopicState
from headgate.core.ledger.model import Intent, JobSpec, LedgerRow, RunOptions, RunState
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.ledger.ranges import Range, TableRange, TopicRange
from headgate.core.ledger.tables import metadata
from headgate.core.metrics.readings import JobLag
from headgate.pipeline.job_kinds import SilverRunOptions
from headgate.quality.job_kind import QualityRunOptions
from headgate.reconcile.job_kind import PairRunOptions

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
TOPICS = {
    "orders": TopicState("orders", "t1", {0: 2, 1: 0}, {0: 10, 1: 5}),
    "cloud": TopicState("cloud", "t2", {0: 0}, {0: 7}),
}


class Broker:
    """Has two topics."""

    def __init__(self, bootstrap: str, timeout: float) -> None:
        assert (bootstrap, timeout) == ("here:9092", 1.0)

    def need(self) -> None:
        """It is there."""

    def describe(self, name: str) -> TopicState | None:
        return TOPICS.get(name)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[OpsStore]:
    engine = create_engine(f"sqlite:///{tmp_path / 'ops.db'}")
    with engine.begin() as db:
        metadata.create_all(db)
    with OpsStore(engine) as store:
        yield store


def follow(topic: str) -> TopicRunOptions:
    """The options of a stream of this topic."""
    return TopicRunOptions(
        topic=topic, dlq_topic=f"{topic}.dlq", trigger_seconds=10, max_offsets_per_batch=100
    )


PAIR = PairRunOptions(
    topic_onprem="orders", topic_cloud="cloud", trigger_seconds=10, max_offsets_per_batch=100
)


def start_run(store: OpsStore, job: str, options: RunOptions) -> None:
    """A run of this job is under way."""
    kind, _, subject = job.partition("-")
    run = store.submit(JobSpec(job, kind, subject, "streaming", "r", options))
    store.move(job, run.number, RunState.RUNNING)


def settle(store: OpsStore, job: str, range_: Range, read: int) -> None:
    intent = store.begin(Intent(None, job, 1, range_, ("r",), NOW, 0))
    about = (None, job, 1, range_, ("r",), NOW, 0, read, read, 0, {"accepted": read}, {})
    store.settle(intent, LedgerRow(*about, committed_at=NOW))


def lags(store: OpsStore) -> tuple[JobLag, ...]:
    watch = LagWatch(store, "here:9092", 1.0, Broker)
    watch.look()
    return watch.lags


def test_a_job_that_has_settled_nothing_is_behind_by_all_there_is(store: OpsStore) -> None:
    start_run(store, "bronze-orders", follow("orders"))
    start_run(store, "reconcile-pair", PAIR)
    assert set(lags(store)) == {
        JobLag("bronze-orders", "orders", 13),
        JobLag("reconcile-pair", "orders", 13),
        JobLag("reconcile-pair", "cloud", 7),
    }


@pytest.mark.parametrize("state", [RunState.RUNNING, RunState.FAILED, RunState.CANCELED])
def test_a_job_that_was_stopped_or_failed_is_behind_as_one_that_runs(
    store: OpsStore, state: RunState
) -> None:
    start_run(store, "bronze-orders", follow("orders"))
    settle(store, "bronze-orders", TopicRange("orders", "t1", {"0": 2}, {"0": 6}), 4)
    if state is not RunState.RUNNING:
        store.move("bronze-orders", 1, state)
    assert lags(store) == (JobLag("bronze-orders", "orders", 9),)


def test_a_topic_made_again_is_not_settled_at_all(store: OpsStore) -> None:
    start_run(store, "bronze-orders", follow("orders"))
    settle(store, "bronze-orders", TopicRange("orders", "t0", {"0": 0}, {"0": 9}), 9)
    assert lags(store) == (JobLag("bronze-orders", "orders", 13),)


def test_what_follows_no_topic_has_no_lag(store: OpsStore) -> None:
    start_run(store, "silver-orders", SilverRunOptions())
    start_run(store, "quality-table", QualityRunOptions())
    start_run(store, "bronze-gone", follow("gone"))
    settle(store, "quality-table", TableRange("a.b", "x", None, 9), 9)
    settle(store, "silver-orders", TableRange("bronze.orders", "x", None, 9), 9)
    assert lags(store) == ()
