"""The hasher behind Debezium's program for Cassandra, and with a schema registry: all of them real."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.hasher_harness import ConsumedRecord, HasherHarness, event, hash_of

from headgate.core.kafka.codecs import FramedReader, FramedWriter, subject_of
from headgate.core.kafka.schema_registry import RegistryClient, Schema
from headgate.core.kafka.topics import TopicSpec
from headgate.errors import UnavailableError
from headgate.local.cassandra import CdcServer
from headgate.local.process import wait_until
from headgate.local.registry import RegistryServer
from headgate.local.service import Running
from headgate.reconcile.cassandra.session import Cassandra, Place, session_at
from headgate.reconcile.hasher.requests import behind_the_frame, closer

pytestmark = pytest.mark.slow
JSON_SCHEMA = {"type": "object", "properties": {"hash_onprem": {"type": "string"}}}
EVENT_SCHEMA = {
    "type": "record",
    "name": "event",
    "fields": [
        {"name": "hash_onprem", "type": "string"},
        {"name": "event_ts", "type": "string"},
        {
            "name": "partitionColumns",
            "type": {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": "part",
                    "fields": [
                        {"name": "type", "type": "string"},
                        {"name": "value", "type": "string"},
                    ],
                },
            },
        },
    ],
}


@pytest.fixture(scope="module")
def session(cassandra: Any) -> Iterator[Cassandra]:
    place = Place((cassandra.service.contact_points,), cassandra.service.port)
    with session_at(place) as opened:
        yield opened


def test_changes_that_debezium_captures_become_readings_and_deletes_tombstones(
    broker: Any, cassandra: Any, session: Cassandra, tmp_path: Path
) -> None:
    harness = HasherHarness(broker, session, tmp_path, "WITH cdc = true")
    topic = f"cassandra.{harness.table}"
    broker.topics.create([TopicSpec(topic, 1, 1)])
    node = cassandra.service
    with Running(CdcServer(tmp_path / "cdc", broker.bootstrap, node.folder, node.port)):
        harness.write([{"pk": f"k{n}"} for n in range(50)])
        session.execute(f"UPDATE {harness.table} SET col1 = 'new' WHERE pk = 'k3'")
        began = int(time.time() * 1000)
        session.execute(f"DELETE FROM {harness.table} WHERE pk = 'k4'")
        assert wait_until(lambda: broker.topics.found(topic).span >= 52, 60)
    harness.run(harness.plan(mode="cdc", topic=topic))
    records = harness.records(harness.cloud_topic)
    newest = {record.key.decode(): record.value for record in records}
    (dead,) = [record for record in records if record.value is None]
    told = next(e for e in map(value_of, harness.records(topic)) if e["op"] == "d")
    assert began <= dead.timestamp == -(-told["source"]["ts_us"] // 1000) <= told["ts_ms"]
    assert newest.keys() == {f"k{n}" for n in range(50)}
    assert newest["k4"] is None
    assert json.loads(newest["k3"] or b"")["hash_cloud"] == hash_of("k3", col1="new")
    assert json.loads(newest["k5"] or b"")["hash_cloud"] == hash_of("k5")


def value_of(record: ConsumedRecord) -> Any:
    return json.loads(record.value or b"{}")


def test_framed_json_is_read_and_framed_readings_written_and_avro_is_left_to_the_job(
    broker: Any, session: Cassandra, registry: Running[RegistryServer], tmp_path: Path
) -> None:
    harness = HasherHarness(broker, session, tmp_path)
    harness.write([{"pk": "json"}, {"pk": "avro"}])
    url = registry.service.url
    client = RegistryClient(url)
    plain = FramedWriter(client, subject_of(harness.topic), Schema(json.dumps(JSON_SCHEMA), "JSON"))
    avro = FramedWriter(client, f"{harness.topic}-avro", Schema(json.dumps(EVENT_SCHEMA)))
    fields = ("hash_onprem", "event_ts", "partitionColumns")
    whole = event("avro")[1]
    harness.send([("json", plain.write(event("json")[1]))])
    harness.send([("avro", avro.write({name: whole[name] for name in fields}))])
    form = harness.plan().cloud
    closed = closer(url, harness.cloud_topic, form)
    done = harness.run(replace(harness.plan(), opened=behind_the_frame, closed=closed))
    reader = FramedReader(client)
    found = [
        reader.read(record.value or b"").value for record in harness.records(harness.cloud_topic)
    ]
    assert {reading["pk"]: reading["hash_cloud"] for reading in found} == {"json": hash_of("json")}
    assert done.skipped == {"not_json": 1}


def test_a_registry_that_is_away_is_said_before_anything_is_read(
    broker: Any, session: Cassandra, tmp_path: Path
) -> None:
    harness = HasherHarness(broker, session, tmp_path)
    harness.send([event("k1")])
    closed = closer("http://127.0.0.1:1", harness.cloud_topic, harness.plan().cloud)
    with pytest.raises(UnavailableError, match="the schema registry does not answer"):
        harness.run(replace(harness.plan(), closed=closed))
    assert harness.run().records == 1
