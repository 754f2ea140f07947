"""What an engine says of itself: cores and heap from a real session, lag from a real broker."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.support.services import RunningBroker

from headgate.core.engine.telemetry import LagWatch, engine_reading
from headgate.core.kafka.producer import TopicWriter
from headgate.core.ledger.model import Intent, JobSpec, LedgerRow, RunState
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.ledger.ranges import TopicRange
from headgate.core.metrics.readings import JobLag
from headgate.quality.job_kind import QualityRunOptions

pytestmark = pytest.mark.integration
JOB = "quality-orders"


def test_cores_and_heap_are_those_of_the_session(spark: SparkSession) -> None:
    found = engine_reading(spark)
    assert found.executors == 1, "the local driver counts as one"
    assert found.cores == spark.sparkContext.defaultParallelism >= found.cores_free >= 0
    assert 0 < found.heap_used < found.heap_max


def test_the_lag_is_what_the_ledger_has_not_settled(broker: RunningBroker, tmp_path: Path) -> None:
    topic = broker.new_topic(partitions=1, prefix="lag")
    writer = TopicWriter(broker.bootstrap)
    writer.send(topic, [b"{}"] * 10, [None] * 10)
    writer.flush()
    with OpsStore.open(f"sqlite:///{tmp_path / 'ops.db'}") as store:
        watch = LagWatch(store, broker.bootstrap, 60.0)
        options = QualityRunOptions(topic=topic)
        run = store.submit(JobSpec(JOB, "quality", "orders", "streaming", "r", options))
        store.move(JOB, run.number, RunState.RUNNING)
        watch.look()
        assert watch.lags == (JobLag(JOB, topic, 10),), "nothing is settled before the first batch"
        state = broker.topics.found(topic)
        range_ = TopicRange(topic, state.topic_id, {"0": 0}, {"0": 4})
        now = datetime.now(UTC)
        intent = store.begin(Intent(None, JOB, 1, range_, ("r",), now, 0))
        row = LedgerRow(
            None, JOB, 1, range_, ("r",), now, 0, 4, 4, 0, {"accepted": 4}, {}, committed_at=now
        )
        store.settle(intent, row)
        watch.look()
        assert watch.lags == (JobLag(JOB, topic, 6),)
        away = LagWatch(store, "127.0.0.1:9", 1.0)
        away.look()
        assert away.lags == ()
