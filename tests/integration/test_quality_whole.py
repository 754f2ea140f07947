"""Sources judged as a whole: two topics joined by key, or a table; again gives the same."""

from __future__ import annotations

import hashlib
import json
from collections import Counter

import pytest
from tests.support.pipeline import (
    InjectedFaultError,
    Pipeline,
    ProducerRecord,
    create_topic,
    fail_at,
)
from tests.support.quality_job import QualityJob, declare_rules

from headgate.checks.certificate import broken
from headgate.engine.faults import Point
from headgate.errors import UsageError

PAIR = """
version: 2
metadata: {env: test, pipeline: tests}
metrics: {namespace: dq.test, window: 10 SECONDS}
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
    return QualityJob(pipeline)


def send(quality: QualityJob) -> None:
    from tests.support.pipeline import produce

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
    bootstrap, topic = str(quality.pipeline.settings.bootstrap_servers), quality.pipeline.topic
    produce(bootstrap, topic, onprem)
    produce(bootstrap, f"{topic}-cloud", cloud)


STATUSES = {"MATCH": 1, "MISMATCH": 1, "DELETE_EVENT": 1, "MISSING_CLOUD": 1, "MISSING_ONPREM": 1}
OUTCOMES = {"newest": 7, "superseded": 2, "refused": 2, "tombstone": 1}


def test_two_topics_are_joined_by_key_and_every_record_has_an_outcome(pair: QualityJob) -> None:
    send(pair)
    with pytest.raises(UsageError, match="is no stream"):
        pair.pipeline.ask_for("quality", "streaming")
    pair.pipeline.process("quality")
    assert pair.statuses() == STATUSES
    assert pair.pipeline.outcomes("quality") == OUTCOMES
    letters = pair.dead_letters()
    assert Counter(code for code, _, _ in letters) == {"dq_missing_pk": 1, "not_json": 1}
    held = {count.rule: (count.n, count.held) for count in pair.counts()}
    assert held == {
        "delete_event": (1, 1),
        "missing_cloud": (1, 2),
        "hash_mismatch": (1, 1),
        "verdict_missing_onprem": (1, 1),
    }
    closed = [window for window in pair.pipeline.store.windows(pair.job) if window.closed_at]
    assert closed
    before = rows_of(pair)

    pair.pipeline.process("quality")
    assert rows_of(pair) == before
    assert pair.dead_letters() == letters
    assert [row.outcomes for row in pair.pipeline.ledger("quality")] == [OUTCOMES, OUTCOMES]
    assert {w.sequence for w in pair.pipeline.store.windows(pair.job)} == {1}
    certificate = pair.pipeline.certify()
    assert broken(certificate) == ()
    (account,) = certificate.rules
    said = {line.name: line.words for line in account.lines}
    assert said["dead letters"] == "dead letters of all evaluations 2, the last refused 2"


@pytest.mark.slow
@pytest.mark.parametrize(
    "point",
    [
        Point.AFTER_INTENT,
        Point.AFTER_STAGING,
        Point.AFTER_DEAD_LETTERS,
        Point.AFTER_PARTIALS,
        Point.AFTER_PUBLISH,
        Point.BEFORE_OUTCOME,
    ],
)
def test_an_evaluation_broken_off_at_any_point_is_done_once(pair: QualityJob, point: Point) -> None:
    send(pair)
    with pytest.raises(InjectedFaultError):
        pair.pipeline.process("quality", fail_at(point))
    pair.pipeline.process("quality")
    assert pair.statuses() == STATUSES
    assert pair.pipeline.outcomes("quality") == OUTCOMES
    assert sum(n for (_, name), n in pair.windows().items() if name == "rows") == 5
    assert len(pair.dead_letters()) == pair.dead_letters().total() == 2
    assert {count.rule: count.n for count in pair.counts()} == {
        "delete_event": 1,
        "missing_cloud": 1,
        "hash_mismatch": 1,
        "verdict_missing_onprem": 1,
    }


def rows_of(quality: QualityJob) -> Counter[tuple[object, ...]]:
    columns = "pk, action, dq_status, dq_reason, dq_rules, hash_onprem, hash_cloud, event_time"
    found = quality.sql(f"SELECT {columns}, kafka_offset FROM dq_results_{{t}}")
    return Counter(tuple(map(str, row)) for row in found)


@pytest.mark.slow
def test_a_table_is_judged_as_a_whole_and_anew_when_it_has_grown(pipeline: Pipeline) -> None:
    quality, name = QualityJob(pipeline), pipeline.name
    quality.sql("CREATE NAMESPACE IF NOT EXISTS lake.given")
    quality.sql(
        "CREATE TABLE lake.given.{t} (id STRING, action STRING, amount DOUBLE, at TIMESTAMP)"
        " USING iceberg"
    )
    values = "('a', 'UPSERT', 1, TIMESTAMP '2024-01-01 10:00:00Z'), ('b', 'DELETE', 1, NULL)"
    quality.sql(f"INSERT INTO lake.given.{{t}} VALUES {values}, (NULL, 'UPSERT', 1, NULL)")
    declare_rules(pipeline, source=f"iceberg: given.{name}", on_fail="dead_letter")
    pipeline.process("quality")
    assert quality.statuses() == {"VALID": 1, "DELETE_EVENT": 1}
    assert pipeline.outcomes("quality") == {"accepted": 2, "refused": 1}

    quality.sql(
        "INSERT INTO lake.given.{t} VALUES ('c', 'UPSERT', -1, TIMESTAMP '2024-01-01 10:00:01Z')"
    )
    pipeline.process("quality")
    assert quality.statuses() == {"VALID": 1, "DELETE_EVENT": 1, "NEGATIVE": 1}
    assert pipeline.ledger("quality")[-1].outcomes == {
        "accepted": 2,
        "dead_letter": 1,
        "refused": 1,
    }
    codes = Counter(code for code, _, _ in quality.dead_letters().elements())
    assert codes == {"dq_missing_pk": 1, "dq_negative": 1}
    said = {w.sequence: w.record for w in pipeline.store.windows(quality.job) if w.record}
    assert said[2]["late"] is False
    assert broken(pipeline.certify()) == ()
