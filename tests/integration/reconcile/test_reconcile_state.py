"""The state that Spark keeps stays bounded, and what comes too late for it is not lost."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.support.pipeline import Pipeline, ProducerRecord
from tests.support.reconcile_job import Message, Pair, cloud, onprem

from headgate.core.metrics.names import STATE_BYTES, STATE_ROWS, Metric
from headgate.core.metrics.readings import Readings
from headgate.quality.spec.reconcile_checks import Limits

SHORT = {"window": "5 SECONDS", "grace": "5 SECONDS", "horizon": "20 SECONDS"}
LIMITS = Limits(timedelta(seconds=5), timedelta(seconds=5), timedelta(seconds=20))


# Keys of each horizon that passes.
KEYS = (10, 40, 10, 10, 10)


def gauge(pair: Pair, metric: Metric) -> int:
    """What the page of metrics says of the job."""
    readings = Readings(pair.pipeline.store, lags=lambda: ())
    (family,) = (found for found in readings.families() if found.metric == metric)
    return int(dict(family.samples)[pair.job,])


@pytest.mark.slow
def test_state_is_let_go_behind_its_horizon_and_late_rows_are_kept(pipeline: Pipeline) -> None:
    pair = Pair(pipeline, **SHORT)
    rows: list[int] = []
    sizes: list[int] = []
    for horizon, count in enumerate(KEYS):
        begin = 20 * horizon
        keys = [f"k{horizon}-{n}" for n in range(count)]
        pair.send(*(onprem(key, read=begin + 1) for key in keys))
        pair.send(*(cloud(key, read=begin + 2) for key in keys))
        pair.process()
        rows.append(gauge(pair, STATE_ROWS))
        sizes.append(gauge(pair, STATE_BYTES))
    # It grows with the keys, and of three horizons at most anything is kept.
    assert rows[0] < rows[1] <= sum(KEYS[:2])
    assert max(rows) <= sum(KEYS[:3])
    assert rows[-1] <= sum(KEYS[-3:]) < rows[1]
    # RocksDB takes what it needs from the start.
    assert 0 < min(sizes) <= max(sizes) < 2 * sizes[0]
    # Of the first horizon nothing is kept any more: what comes for it now is a state of its own.
    pair.send(cloud("k0-0", number=2, version=1, read=3), onprem("new", read=90))
    pair.process()
    assert pair.counters()["late_records"] == 1
    assert pair.verdicts() == pair.expected(LIMITS)
    assert pair.statuses()["k0-0"] == "MISMATCH"
    late = pair.sql("SELECT pk FROM lake.dq.results_{t} WHERE origin = 'late'")
    assert [row["pk"] for row in late] == ["k0-0"]
    assert sum(pair.outcomes().values()) == 2 * sum(KEYS) + 2


@pytest.mark.slow
def test_a_batch_of_which_nothing_can_take_part_has_its_outcome(pipeline: Pipeline) -> None:
    pair = Pair(pipeline)
    pair.send(*(Message("cloud", ProducerRecord(b"no", partition=0)) for _ in range(3)))
    pair.process()
    assert pair.outcomes() == {"refused": 3}
    assert pair.statuses() == {}
