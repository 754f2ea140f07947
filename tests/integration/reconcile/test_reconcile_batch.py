"""A pair as the documents declare it, without times of its own: batch runs settle at the end of their input."""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import pytest
from tests.support.pipeline import (
    InjectedFaultError,
    Pipeline,
    ProducerRecord,
    create_topic,
    fail_at,
    produce,
)
from tests.support.quality_job import QualityJob

from headgate.certify.certificate import broken
from headgate.core.engine.batch import Point

PAIR = """
version: 2
metadata: {env: test, pipeline: tests}
metrics: {namespace: dq.test, window: 1 HOUR}
tables:
  - name: %(name)s
    pk: id
    sources:
      onprem: {topic: %(topic)s, table: %(name)s_onprem, dc: onprem, alias: t1,
               dlq_topic: %(topic)s-dlq,
               columns: {id: STRING, action: STRING, hash_onprem: STRING, ts: TIMESTAMP(3)},
               event_time: ts}
      cloud: {topic: %(topic)s-cloud, table: %(name)s_cloud, dc: azure, alias: t2,
              dlq_topic: %(topic)s-cloud-dlq,
              columns: {id: STRING, hash_cloud: STRING, ts: TIMESTAMP(3)}, event_time: ts}
    hash: {onprem_field: hash_onprem, cloud_field: hash_cloud}
    rules:
      - {name: delete_event, when: "{t1}.action = 'DELETE'", description: deleted on-prem,
         emit: {dq_status: DELETE_EVENT, metric: delete_count, severity: INFO}}
      - {name: missing_cloud, when: "{t1}.id IS NOT NULL AND {hash_cloud} IS NULL",
         description: not in the cloud,
         emit: {dq_status: MISSING_CLOUD, metric: missing_cloud, severity: ERROR}}
      - {name: hash_mismatch, when: "{hash_onprem} <> {hash_cloud}", description: they differ,
         emit: {dq_status: MISMATCH, metric: hash_mismatch, severity: ERROR}}
"""


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def side(field: str, key: str | None, text: str | None, second: int, **more: str) -> ProducerRecord:
    value = {"id": key, field: digest(text) if text else None, **more}
    value["ts"] = f"2024-01-01T10:00:{second:02d}.000Z"
    return ProducerRecord(json.dumps(value).encode(), (key or "").encode())


@pytest.fixture
def pair(pipeline: Pipeline) -> QualityJob:
    bootstrap = str(pipeline.settings.bootstrap_servers)
    for name in (f"{pipeline.topic}-cloud", f"{pipeline.topic}-cloud-dlq"):
        create_topic(bootstrap, name, 2, 1_048_588)
    folder = pipeline.settings.root / "rules"
    folder.mkdir()
    text = PAIR % {"name": pipeline.name, "topic": pipeline.topic}
    (folder / "pair.yml").write_text(text)
    return QualityJob(pipeline, "reconcile")


def send(pair: QualityJob) -> None:
    onprem = [
        side("hash_onprem", "a", "old", 1, action="UPSERT"),
        side("hash_onprem", "a", "new", 5, action="UPSERT"),
        side("hash_onprem", "b", "x", 2, action="UPSERT"),
        side("hash_onprem", "c", "x", 3, action="DELETE"),
        side("hash_onprem", "d", "x", 4, action="UPSERT"),
        side("hash_onprem", None, "x", 4, action="UPSERT"),
        ProducerRecord(None, b"gone"),
    ]
    cloud = [
        side("hash_cloud", "a", "new", 6),
        side("hash_cloud", "b", "other", 6),
        side("hash_cloud", "b", "older", 1),
        side("hash_cloud", "e", "x", 6),
        ProducerRecord(b"{", b"broken"),
    ]
    bootstrap, topic = str(pair.pipeline.settings.bootstrap_servers), pair.pipeline.topic
    produce(bootstrap, topic, arriving_now(onprem))
    produce(bootstrap, f"{topic}-cloud", arriving_now(cloud))


def arriving_now(records: Iterable[ProducerRecord]) -> list[ProducerRecord]:
    """So that the hour for which the sides wait has not passed."""
    return [replace(record, timestamp=round(time.time() * 1000)) for record in records]


STATUSES = {"MATCH": 1, "MISMATCH": 1, "DELETE_EVENT": 2, "MISSING_CLOUD": 1, "MISSING_ONPREM": 1}
OUTCOMES = {"accepted": 9, "refused": 2, "tombstone": 1}
COUNTS = {
    "delete_event": (2, 2),
    "missing_cloud": (1, 3),
    "hash_mismatch": (1, 1),
    "verdict_match": (1, 1),
    "verdict_missing_onprem": (1, 1),
}


def test_keys_that_still_wait_are_settled_at_the_end_and_every_record_has_an_outcome(
    pair: QualityJob,
) -> None:
    send(pair)
    pair.pipeline.process("reconcile")
    assert pair.statuses() == STATUSES
    assert pair.pipeline.outcomes("reconcile") == OUTCOMES
    letters = pair.dead_letters()
    assert Counter(code for code, _, _ in letters) == {"dq_missing_pk": 1, "not_json": 1}
    assert settled_counts(pair) == COUNTS
    assert settled_by(pair) == {
        "a": "records",
        **dict.fromkeys(("b", "c", "d", "e", "gone"), "end_of_input"),
    }
    assert all(window.closed_at for window in pair.pipeline.store.windows(pair.job))
    before = rows_of(pair)

    pair.pipeline.process("reconcile")
    assert rows_of(pair) == before
    assert pair.dead_letters() == letters
    assert settled_counts(pair) == COUNTS
    assert {w.sequence for w in pair.pipeline.store.windows(pair.job)} == {1}
    assert broken(pair.pipeline.certify()) == ()

    late = arriving_now([side("hash_cloud", "d", "x", 7)])
    produce(bootstrap_of(pair), f"{pair.pipeline.topic}-cloud", late)
    pair.pipeline.process("reconcile")
    assert settled_by(pair)["d"] == "records"
    assert pair.statuses() == {
        **{k: n for k, n in STATUSES.items() if k != "MISSING_CLOUD"},
        "MATCH": 2,
    }
    assert broken(pair.pipeline.certify()) == ()


IN_A_BATCH = (Point.AFTER_DEAD_LETTERS, Point.AFTER_STATES)
IN_BOTH = (
    Point.AFTER_INTENT,
    Point.AFTER_STAGING,
    Point.AFTER_PARTIALS,
    Point.AFTER_PUBLISH,
    Point.BEFORE_OUTCOME,
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("point", "nth"),
    [*((point, 1) for point in (*IN_A_BATCH, *IN_BOTH)), *((point, 2) for point in IN_BOTH)],
)
def test_a_run_broken_off_in_its_batch_or_at_its_end_settles_each_key_once(
    pair: QualityJob, point: Point, nth: int
) -> None:
    send(pair)
    with pytest.raises(InjectedFaultError):
        pair.pipeline.process("reconcile", fail_at(point, nth))
    pair.pipeline.process("reconcile")
    assert pair.statuses() == STATUSES
    assert pair.pipeline.outcomes("reconcile") == OUTCOMES
    assert sum(n for (_, name), n in pair.windows().items() if name == "rows") == 6
    assert len(pair.dead_letters()) == pair.dead_letters().total() == 2
    assert settled_counts(pair) == COUNTS


def settled_counts(pair: QualityJob) -> dict[str, tuple[int, int]]:
    """What batches and sweeps have counted of verdicts."""
    found: dict[str, tuple[int, int]] = {}
    for job in (pair.job, f"sweep-{pair.pipeline.name}"):
        for count in pair.pipeline.store.rule_counts(job):
            if count.rule and not count.rule.startswith("counted_"):
                n, matched = found.get(count.rule, (0, 0))
                found[count.rule] = n + count.n, matched + count.matched
    return {rule: counts for rule, counts in found.items() if any(counts)}


def settled_by(pair: QualityJob) -> dict[str, str]:
    return {
        row["pk"]: row["settled_by"]
        for row in pair.sql("SELECT pk, settled_by FROM dq_results_{t}")
    }


def rows_of(pair: QualityJob) -> Counter[tuple[object, ...]]:
    columns = "pk, action, dq_status, dq_reason, dq_rules, hash_onprem, hash_cloud, event_time"
    found = pair.sql(f"SELECT {columns}, kafka_offset FROM dq_results_{{t}}")
    return Counter(tuple(map(str, row)) for row in found)


def bootstrap_of(pair: QualityJob) -> str:
    return str(pair.pipeline.settings.bootstrap_servers)
