"""The generator against a real broker: every row arrives once, as it stands in the file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import orjson
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Consumer, TopicPartition

from headgate.core.kafka.producer import TopicWriter
from headgate.errors import UnavailableError
from headgate.local.process import wait_until
from headgate.pipeline.generator.declaration import load_sample
from headgate.pipeline.generator.parquet_to_kafka import Plan, Sending, generate
from headgate.pipeline.generator.sample import write_sample
from headgate.pipeline.generator.source import ParquetSource
from headgate.pipeline.loader import load_dataset

ROOT = Path(__file__).parents[3]
ROWS = 12_000


class Nobody:
    def begin(self, total: int) -> None: ...

    def advance(self, rows: int) -> None: ...


class Topics:
    """A topic pair of its own for one test, and a plan that writes to it."""

    def __init__(self, broker: Any, folder: Path) -> None:
        self.broker, self.folder = broker, folder
        self.topic = broker.new_topic(partitions=3, prefix="events")
        self.dlq = broker.new_topic(prefix="events-dlq")
        self.file = folder / "events.parquet"
        sample = load_sample(ROOT / "datasets/taxi/sample.yml").value
        self.planted = write_sample(sample, self.file, ROWS).planted

    def plan(self, **changes: Any) -> Plan:
        variables = {"TOPIC": self.topic, "DLQ_TOPIC": self.dlq}
        values: dict[str, Any] = {
            "file": self.file,
            "said": "--file",
            "dataset": load_dataset(ROOT / "datasets/taxi/dataset.yml", variables),
            "bootstrap": self.broker.bootstrap,
            "broker": "embedded",
            "mode": "burst",
            "rate": 1,
            "max_events": 0,
            "schema_file": None,
            "metrics_file": self.folder / "generator.json",
        }
        return Plan(**{**values, **changes})

    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "TOPIC": self.topic,
            "DLQ_TOPIC": self.dlq,
            "BOOTSTRAP_SERVERS": self.broker.bootstrap,
            "HEADGATE_HOME": str(self.folder / "home"),
            "DATASET": "taxi",
        }

    def records(self, topic: str) -> list[tuple[int, bytes | None, bytes]]:
        """Partition, key and value of everything on the topic."""
        state = self.broker.topics.describe(topic)
        consumer = Consumer(
            {"bootstrap.servers": self.broker.bootstrap, "group.id": "t", "log_level": 0}
        )
        consumer.assign([TopicPartition(topic, p, state.begin[p]) for p in state.begin])
        found: list[Any] = []
        deadline = time.monotonic() + 120
        while len(found) < state.span and time.monotonic() < deadline:
            for message in consumer.consume(5_000, timeout=1):
                assert message.error() is None
                found.append((message.partition(), message.key(), message.value()))
        consumer.close()
        assert len(found) == state.span, f"{len(found)} of {state.span} records of {topic} came"
        return found


@pytest.fixture
def topics(broker: Any, tmp_path: Path) -> Topics:
    return Topics(broker, tmp_path)


def rows_of(file: Path) -> list[bytes]:
    """The file's finite rows as orjson writes them, by another way than the generator's."""
    rows = pq.ParquetFile(file).read().to_pylist()
    finite = [row for row in rows if abs(row["fare_amount"] + row["trip_distance"]) < 1e9]
    return [orjson.dumps(row) for row in finite]


def test_every_row_arrives_once_with_its_key_in_one_partition(topics: Topics) -> None:
    generated = generate(topics.plan(), Nobody())
    records = topics.records(topics.topic)
    assert generated.events == len(records) == ROWS
    refused = [value for _, _, value in records if b":NaN" in value or b":Infinity" in value]
    assert len(refused) == topics.planted.bad > 0
    assert sorted(v for _, _, v in records if v not in refused) == sorted(rows_of(topics.file))
    homes: dict[bytes | None, set[int]] = {}
    for partition, key, value in records:
        homes.setdefault(key, set()).add(partition)
        assert key is not None
        assert b'"PULocationID":' + key + b"," in value
    assert all(len(partitions) == 1 for partitions in homes.values())
    assert {partition for partition, _, _ in records} == {0, 1, 2}


def test_with_the_schema_refused_rows_are_dead_letters_in_their_envelope(topics: Topics) -> None:
    plan = topics.plan(schema_file=ROOT / "schemas/taxi_trip.json")
    generated = generate(plan, Nobody())
    letters = [orjson.loads(value) for _, _, value in topics.records(topics.dlq)]
    assert generated.invalid == len(letters) == topics.planted.bad
    assert generated.events == len(topics.records(topics.topic)) == ROWS - topics.planted.bad
    assert {frozenset(letter) for letter in letters} == {frozenset({"error", "row", "timestamp"})}
    assert {letter["row"]["fare_amount"] for letter in letters} >= {"NaN"}
    assert orjson.loads(plan.metrics_file.read_bytes())["schema_validation"] is True


def test_a_topic_that_is_not_there_is_told_before_the_first_record(topics: Topics) -> None:
    topics.dlq = "nobody-made-this"
    with pytest.raises(UnavailableError, match="nobody-made-this") as caught:
        generate(topics.plan(schema_file=ROOT / "schemas/taxi_trip.json"), Nobody())
    assert "headgate topics create" in caught.value.fix
    assert topics.records(topics.topic) == []


def test_a_broker_that_goes_away_is_named_with_what_it_had_acknowledged(
    private_broker: Any, tmp_path: Path
) -> None:
    topics = Topics(private_broker, tmp_path)
    plan = topics.plan(mode="realtime", rate=6_000)
    source = ParquetSource(plan.file, plan.said)
    sending = Sending(plan, source, None, TopicWriter(plan.bootstrap, seconds_to_deliver=3))
    seen: list[int] = []

    class Killer(Nobody):
        def advance(self, rows: int) -> None:
            seen.append(rows)
            if sum(seen) == 3_000:
                private_broker.kill()

    with pytest.raises(UnavailableError, match="acknowledged") as caught:
        sending.run(Killer(), lambda: False)
    assert plan.bootstrap in caught.value.what
    assert not plan.metrics_file.exists()


def test_the_command_sends_and_says_so(topics: Topics) -> None:
    command = [sys.executable, "-m", "headgate.cli.main", "feed", "generate"]
    arguments = ["--file", str(topics.file), "--max-events", "500"]
    done = subprocess.run(
        [*command, *arguments],
        cwd=ROOT,
        env=topics.environment(),
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "Events produced: 500 / Invalid (→ DLQ): 0\n"
    assert len(topics.records(topics.topic)) == 500


def test_ctrl_c_sends_what_was_begun_and_says_how_many(topics: Topics) -> None:
    command = [sys.executable, "-m", "headgate.cli.main", "feed", "generate"]
    arguments = ["--file", str(topics.file), "--rate", "200"]  # a minute for all rows
    running = subprocess.Popen(
        [*command, *arguments],
        cwd=ROOT,
        env=topics.environment(),
        stderr=subprocess.PIPE,
        text=True,
    )
    assert wait_until(lambda: topics.broker.topics.found(topics.topic).span > 0, 180)
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=180)
    sent = len(topics.records(topics.topic))
    assert running.returncode == 130
    assert 0 < sent < ROWS
    assert f"interrupted after {sent:,} of {ROWS:,} rows" in said
    metrics = orjson.loads((topics.folder / "home/metrics/generator.json").read_bytes())
    assert metrics["events"] == sent
