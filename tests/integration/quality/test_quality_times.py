"""Windows of a quality job whatever its records say of time, and whoever broke it off."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta

import pytest
from tests.support.pipeline import (
    InjectedFaultError,
    Pipeline,
    ProducerRecord,
    create_topic,
    fail_at,
)
from tests.support.quality_job import RULES, UNIQUE, QualityJob, declare_rules, row
from tests.support.run_requests import REPAIR
from tests.support.streams import Stream

from headgate.certify.certificate import broken
from headgate.core.engine.batch import Point
from headgate.core.kafka.topics import Topics
from headgate.core.ledger.model import Intent, LedgerExtra, LedgerRow, RunState
from headgate.core.ledger.ops_store import OpsStore, utc_now
from headgate.local.process import wait_until
from headgate.quality.job.topic import StoppedByRuleError
from headgate.quality.job.windows import LeftOpen

FAR = (
    "0001-01-01T00:00:00Z",
    "2098-01-01T00:00:00Z",
    "9999-12-31T23:59:59Z",
    "+12345-01-01T00:00:00Z",
    "+12345-01-01T00:00:30Z",
    # The ends of what Spark can tell: a sum with either would overflow.
    "-290308-12-21T19:59:06Z",
    "+294247-01-10T04:00:54Z",
)
ROWS = """
      - {name: few, measure: row_count, max: 99}
"""
SILENCE = timedelta(seconds=2)


@pytest.fixture
def quality(pipeline: Pipeline) -> QualityJob:
    pipeline.settings = pipeline.settings.model_copy(update={"trigger_seconds": 0.5})
    return QualityJob(pipeline)


def far(number: int, at: str) -> ProducerRecord:
    value = {"id": f"far{number}", "action": "UPSERT", "amount": 1.0, "at": at}
    return ProducerRecord(json.dumps(value).encode(), partition=0)


def said_rows(quality: QualityJob) -> int:
    """The rows in the records of all windows."""
    found = quality.pipeline.store.windows(quality.job)
    return sum(window.record["rows"] for window in found if window.record)


def late_rows(quality: QualityJob) -> dict[bool, int]:
    query = "SELECT late, sum(n) FROM lake.dq.partials_{t} WHERE kind = 'rows' GROUP BY late"
    return {bool(late): int(n) for late, n in quality.sql(query)}


@pytest.mark.slow
def test_far_times_break_no_stream_and_silence_closes_what_is_open(
    quality: QualityJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline, store = quality.pipeline, quality.pipeline.store
    monkeypatch.setattr("headgate.core.metrics.windows.IDLE", SILENCE)
    declare_rules(pipeline, RULES + UNIQUE)
    odd = [far(n, at) for n, at in enumerate(FAR)]
    pipeline.produce([*odd, row(1, key="k", second=1, partition=0)])
    run = pipeline.ask_for("quality", "streaming")
    stream = Stream(pipeline, pipeline.context(run))
    try:
        stream.wait_until_read(8)
        # Nothing was carried into the future: the key is known, its window is open.
        pipeline.produce([row(2, key="k", second=2, partition=0)])
        stream.wait_until_read(9)
        assert quality.statuses() == {"VALID": 8, "INVALID": 1}
        assert wait_until(lambda: not store.pending_windows(quality.job), 30)
        assert stream.is_alive
        assert said_rows(quality) == 9
        before = late_rows(quality)
        pipeline.produce([row(3, second=3, partition=0)])
        stream.wait_until_read(10)
        assert late_rows(quality).get(True, 0) == before.get(True, 0) + 1
    finally:
        stream.stop()
    # What the stopped stream left open is closed by the engine, and not before its time.
    idle = LeftOpen(pipeline.session, store, pipeline.settings)
    assert idle.look() == 0
    left = len(store.pending_windows(quality.job))
    later = LeftOpen(
        pipeline.session, store, pipeline.settings, lambda: utc_now() + timedelta(hours=1)
    )
    assert later.look() == left
    assert (store.pending_windows(quality.job), said_rows(quality)) == ((), 10)


def test_a_batch_of_far_times_that_was_broken_off_is_finished(quality: QualityJob) -> None:
    pipeline = quality.pipeline
    declare_rules(pipeline, RULES + UNIQUE, aggregates=ROWS)
    pipeline.produce(far(0, at) for at in FAR)
    with pytest.raises(InjectedFaultError):
        pipeline.process("quality", fail_at(Point.BEFORE_OUTCOME))
    pipeline.process("quality")
    assert pipeline.outcomes("quality") == {"accepted": 7}
    assert pipeline.store.pending_windows(quality.job) == ()
    assert said_rows(quality) == 7


def test_a_stop_is_not_lost_by_a_kill_behind_the_settled_batch(
    quality: QualityJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline, store = quality.pipeline, quality.pipeline.store
    declare_rules(pipeline, on_fail="stop")
    pipeline.produce([row(1, amount=-5, partition=0)])
    settle = OpsStore.settle

    def killed(
        self: OpsStore,
        intent: Intent,
        row: LedgerRow,
        extras: Sequence[LedgerExtra] = (),
    ) -> LedgerRow:
        settle(self, intent, row, extras)
        raise InjectedFaultError

    run = pipeline.ask_for("quality")
    with monkeypatch.context() as patch:
        patch.setattr(OpsStore, "settle", killed)
        with pytest.raises(InjectedFaultError):
            pipeline.carry_out(run)
    pipeline.produce([row(2, partition=0)])
    # As often as it is killed before its end is written down.
    for _ in range(2):
        with pytest.raises(StoppedByRuleError, match="negative on 1 rows"):
            pipeline.carry_out(run)
    assert pipeline.outcomes("quality") == {"accepted": 1}
    store.move(run.job, run.number, RunState.FAILED, StoppedByRuleError.code)
    pipeline.process("quality")
    assert pipeline.outcomes("quality") == {"accepted": 2}


@pytest.mark.slow
def test_a_half_published_batch_of_a_topic_that_is_gone_is_taken_back(quality: QualityJob) -> None:
    pipeline = quality.pipeline
    declare_rules(pipeline, RULES + UNIQUE)
    pipeline.produce([row(n, second=n, partition=0) for n in range(5)])
    pipeline.process("quality")
    pipeline.produce([row(n, second=n, partition=0) for n in range(5, 9)])
    with pytest.raises(InjectedFaultError):
        pipeline.process("quality", fail_at(Point.AFTER_KEYS))
    assert counted(quality) == (5, 9, 9)
    bootstrap = str(pipeline.settings.bootstrap_servers)
    Topics(bootstrap).delete([pipeline.topic])
    create_topic(bootstrap, pipeline.topic, 2, 1_048_588)
    pipeline.produce([row(7, second=7, partition=0)])
    assert "goes on at" in pipeline.process("quality", request=REPAIR).progress.words
    assert counted(quality) == (5, 5, 5)
    pipeline.process("quality")
    assert counted(quality) == (6, 6, 6)
    # Its key was seen only by the batch that was given up.
    assert quality.statuses() == {"VALID": 6}
    assert broken(pipeline.certify()) == ()


def counted(quality: QualityJob) -> tuple[int, int, int]:
    """Rows in the results, rows counted into windows, and keys."""
    (found,) = quality.sql(
        "SELECT (SELECT count(*) FROM lake.dq.results_{t}),"
        " (SELECT sum(n) FROM lake.dq.partials_{t} WHERE kind = 'rows'),"
        " (SELECT count(*) FROM lake.dq.keys_{t})"
    )
    return int(found[0]), int(found[1]), int(found[2])
