"""What no batch can say of a key is said between batches: deadlines, and halves in two windows."""

from __future__ import annotations

from typing import Any

import pytest
from tests.integration.reconcile import Pair, cloud, onprem, tombstone
from tests.integration.spark import Pipeline

from headgate.checks.certificate import broken
from headgate.jobs.reconcile_sweep import sweep_job

NEWEST = """
SELECT pk, dq_status FROM (
  SELECT *, row_number() OVER (PARTITION BY pk ORDER BY onprem_version DESC NULLS LAST,
    cloud_version DESC NULLS LAST, processing_time DESC, settled DESC) AS nth
  FROM lake.dq.results_{t}
) WHERE nth = 1"""


@pytest.fixture
def pair(pipeline: Pipeline) -> Pair:
    return Pair(pipeline)


def told(pair: Pair, pk: str) -> list[tuple[Any, ...]]:
    """The story of one key, as its table has it."""
    rows = pair.sql(
        "SELECT origin, dq_status FROM lake.dq.results_{t}"
        f" WHERE pk = '{pk}' ORDER BY processing_time, dq_status"
    )
    return [tuple(row) for row in rows]


def newest(pair: Pair) -> dict[str, str]:
    return {row["pk"]: row["dq_status"] for row in pair.sql(NEWEST)}


def test_keys_past_their_deadline_are_settled_without_a_record(pair: Pair) -> None:
    pair.send(onprem("alone"), cloud("unknown"), onprem("same"), cloud("same"))
    pair.send(onprem("dead", action="DELETE"), onprem("zombie", action="DELETE"), cloud("zombie"))
    pair.send(onprem("apart"), cloud("apart", read=4_000), tombstone("cloud", "gone"))
    pair.process()
    assert newest(pair) == pair.statuses()
    assert told(pair, "alone") == [("batch", "PENDING"), ("sweep", "MISSING_CLOUD")]
    assert told(pair, "apart") == [
        ("batch", "PENDING"),
        ("batch", "PENDING"),
        ("sweep", "LATE_MATCH"),
    ]
    assert told(pair, "same") == [("batch", "MATCH")]
    assert told(pair, "zombie") == [("batch", "ZOMBIE")]
    (row,) = pair.pipeline.store.ledger(sweep_job(pair.name))
    assert row.outcomes == {"swept": 5}
    counts = {c.rule: c.n for c in pair.pipeline.store.rule_counts(sweep_job(pair.name))}
    assert counts == {
        "verdict_missing_cloud": 1,
        "verdict_missing_onprem": 1,
        "verdict_late_match": 1,
        "verdict_delete_event": 2,
        "counted_late_arrival": 1,
    }
    assert broken(pair.pipeline.certify()) == ()


def test_a_sweep_says_nothing_twice(pair: Pair) -> None:
    pair.send(onprem("alone"), onprem("a"), cloud("a"))
    pair.process()
    before = pair.sql("SELECT id FROM lake.dq.results_{t} ORDER BY id")
    pair.process()
    pair.send(onprem("a"), onprem("alone"))  # replayed in another window of time
    pair.process()
    after = pair.sql("SELECT id FROM lake.dq.results_{t} ORDER BY id")
    assert after == before
    assert newest(pair) == pair.statuses() == {"alone": "MISSING_CLOUD", "a": "MATCH"}
