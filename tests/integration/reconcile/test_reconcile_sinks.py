"""What a reconciled pair counts, on a real job: sinks and Prometheus say the same, rules or not."""

from __future__ import annotations

import pytest
from tests.support.metric_sinks import RecordingSink
from tests.support.pipeline import Pipeline, ProducerRecord
from tests.support.reconcile_job import Message, Pair, cloud, onprem, tombstone

from headgate.core.metrics.delivery import Deliverer
from headgate.core.metrics.readings import Readings

RULES = """
rules:
  - name: hash_mismatch
    when: "{hash_onprem} <> {hash_cloud}"
    emit: {dq_status: MISMATCH, metric: hash_mismatch, severity: ERROR}
"""
COUNTERS = {
    "dq_late_arrival": 2,
    "dq_delete_count": 2,
    "dq_duplicates": 1,
    "dq_missing_pk": 1,
    "dq_unknown_action": 1,
    "dq_dlq_records": 2,
}
WINDOWS = {"dq_hash_mismatch": 2, "dq_invalid_hash": 1, "dq_hash_format_error": 1}


@pytest.mark.slow
def test_sinks_are_told_all_that_a_pair_counts(pipeline: Pipeline) -> None:
    pair, sink = Pair(pipeline), RecordingSink()
    path = pipeline.settings.root / "rules" / f"{pair.name}.yml"
    path.write_text(path.read_text() + RULES)
    deliverer = Deliverer(pipeline.store, [sink])
    pair.send(
        onprem("late"), cloud("late", number=2, read=700),
        onprem("late-too"), cloud("late-too", read=700),
        onprem("differs"), cloud("differs", number=2),
        onprem("bad", number=16**64), cloud("bad", number=16**64),
        onprem("gone", version=1, action="DELETE"), tombstone("cloud", "gone", read=2),
        onprem("again"), onprem("again"), cloud("again"),
        onprem("odd", action="TRUNCATE"), Message("cloud", ProducerRecord(None, None)),
    )  # fmt: skip
    pair.process()
    deliverer.deliver_now()
    scraped = {f.metric.name: f.samples for f in Readings(pipeline.store).families()}
    for name, n in {**COUNTERS, **WINDOWS}.items():
        kind = "batch" if name in COUNTERS else "window"
        told = [m for m in sink.messages if m["record"] == kind]
        assert sum(message.get(name, 0) for message in told) == n, name
        assert sum(value for _, value in scraped[f"{name}_total"]) == n, name
    pair.process()
    deliverer.deliver_now()
    assert len(set(sink.ids)) == len(sink.ids)
