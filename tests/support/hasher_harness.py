"""A Cassandra table, its Kafka topics, and hashers that run in this process or in their own."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from headgate.core.kafka.topics import TopicSpec
from headgate.hashing.contract import load_contract
from headgate.hashing.python import row_hash
from headgate.local.process import die_with_parent
from headgate.quality.record_parser import read_path
from headgate.reconcile.cassandra.session import Cassandra, Place
from headgate.reconcile.hasher.plan import Given, HasherPlan
from headgate.reconcile.hasher.readings import CloudForm
from headgate.reconcile.hasher.requests import EventForm
from headgate.reconcile.hasher.run import Hashed, run_hasher

ROOT = Path(__file__).parents[2]
CONTRACT = load_contract(ROOT / "contracts/business_table.hash.yml").value
COLUMNS = (
    "pk text PRIMARY KEY, col1 text, col2 decimal, col3 timestamp, col4 double,"
    " last_updated timestamp"
)
AT = datetime(2026, 3, 1, 12, 0, 0, 123_000, tzinfo=UTC)
_numbers = itertools.count()


@dataclass
class RecordedProgress:
    """A progress watcher that records how many records were handled and every message."""

    advanced: int = 0

    def __post_init__(self) -> None:
        self.messages: list[str] = []

    def advance(self, records: int) -> None:
        self.advanced += records

    def say(self, words: str) -> None:
        self.messages.append(words)


class HasherHarness:
    """One Cassandra table with its event, cloud and dead-letter topics, all new."""

    def __init__(self, broker: Any, cassandra: Cassandra, folder: Path, options: str = ""):
        self.broker, self.cassandra, self.folder = broker, cassandra, folder
        number = next(_numbers)
        self.keyspace, self.name = "hasher_lab", f"business_{os.getpid()}_{number}"
        cassandra.session.execute(
            f"CREATE KEYSPACE IF NOT EXISTS {self.keyspace} WITH replication ="
            " {'class': 'SimpleStrategy', 'replication_factor': 1}"
        )
        cassandra.session.execute(f"CREATE TABLE {self.table} ({COLUMNS}) {options}")
        self.topic = broker.new_topic(3, f"t1-{number}")
        self.cloud_topic, self.dead_letter_topic = f"t2-{self.topic}", f"dlq-{self.topic}"
        broker.topics.create(
            [TopicSpec(self.cloud_topic, 6, 1), TopicSpec(self.dead_letter_topic, 3, 1)]
        )

    @property
    def table(self) -> str:
        return f"{self.keyspace}.{self.name}"

    def plan(self, **given: Any) -> HasherPlan:
        """The plan of a hasher of this table; `given` are its command-line options."""
        chosen = Given(**{"once": True, **given})
        return HasherPlan(
            table="business",
            given=chosen,
            bootstrap=self.broker.bootstrap,
            topic=chosen.topic or self.topic,
            cloud_topic=self.cloud_topic,
            letters_topic=self.dead_letter_topic,
            cassandra_table=self.table,
            key=("pk",),
            version="last_updated",
            fields=tuple(field.name for field in CONTRACT.fields),
            row_hash=lambda row: row_hash(CONTRACT, row),
            events=EventForm(
                "pk",
                read_path("partitionColumns[type='PK'].value"),
                "action",
                "hash_onprem",
                "hash_version",
                "event_ts",
            ),
            cloud=CloudForm("pk", "hash_cloud", "hash_version", "cloud_ts", 2),
            reread_after=chosen.reread_after or 450.0,
            columns_file=self.folder / "business.columns.json",
        )

    def run(
        self,
        plan: HasherPlan | None = None,
        progress: RecordedProgress | None = None,
        agent: str | None = None,
    ) -> Hashed:
        """Run a hasher in this process until its plan ends."""
        return run_hasher(
            plan or self.plan(), self.cassandra.place, progress or RecordedProgress(), agent
        )

    def write(self, rows: Iterable[Mapping[str, object]]) -> None:
        """Insert rows into Cassandra; what a row leaves out is as `row_of` has it."""
        found = [{**row_of(str(row["pk"])), **row} for row in rows]
        names = list(found[0])
        marks = ", ".join("?" for _ in names)
        cql = f"INSERT INTO {self.table} ({', '.join(names)}) VALUES ({marks})"
        self.cassandra.write_many(cql, [tuple(row[name] for name in names) for row in found])

    def send(self, values: Iterable[tuple[str | None, object]], topic: str = "") -> None:
        """Produce records: a key, and a value that is JSON unless it is bytes or None."""
        producer: Any = Producer({"bootstrap.servers": self.broker.bootstrap, "log_level": 0})
        for key, value in values:
            body = value if value is None or isinstance(value, bytes) else json.dumps(value)
            producer.produce(topic or self.topic, body, key and key.encode())
            producer.poll(0)
        assert producer.flush(120) == 0

    def readings(self) -> list[dict[str, Any]]:
        """Messages of the cloud topic by partition and offset; of a tombstone only the key."""
        return [
            {"pk": r.key.decode()} if r.value is None else json.loads(r.value)
            for r in self.records(self.cloud_topic)
        ]

    def records(self, topic: str) -> list[ConsumedRecord]:
        """All records of a topic by partition and offset."""
        state = self.broker.topics.found(topic)
        consumer: Any = Consumer(
            {"bootstrap.servers": self.broker.bootstrap, "group.id": "t", "log_level": 0}
        )
        consumer.assign([TopicPartition(topic, p, state.begin[p]) for p in state.begin])
        found: list[ConsumedRecord] = []
        limit = time.monotonic() + 120
        while len(found) < state.span and time.monotonic() < limit:
            for m in consumer.consume(500, 0.1):
                assert m.error() is None
                headers = {k: v.decode() for k, v in m.headers() or ()}
                place = (m.partition(), m.offset(), m.timestamp()[1])
                found.append(ConsumedRecord(m.key(), m.value(), headers, *place))
        consumer.close()
        assert len(found) >= state.span, f"{len(found)} of {state.span} records of {topic} came"
        return sorted(found, key=lambda got: (got.partition, got.offset))


@dataclass(frozen=True)
class ConsumedRecord:
    """A record read from a topic."""

    key: bytes
    value: bytes | None
    headers: dict[str, str]
    partition: int
    offset: int
    timestamp: int


def row_of(key: str) -> dict[str, object]:
    """The values that a row of this key has unless a test changes them."""
    return {
        "pk": key,
        "col1": f"text of {key}",
        "col2": Decimal("12.50"),
        "col3": AT,
        "col4": 0.1 + len(key),
        "last_updated": AT,
    }


def hash_of(key: str, **changes: object) -> str:
    """The hash of that row with these changes."""
    return row_hash(CONTRACT, {**row_of(key), **changes})


def event(key: str, **changes: object) -> tuple[str, dict[str, object]]:
    """The record of Topic-1 for the row as on-prem has it."""
    fields: dict[str, object] = {
        "event_id": f"e-{key}",
        "hash_onprem": hash_of(key),
        "hash_version": 2,
        "partitionColumns": [{"type": "PK", "value": key}],
        "event_ts": AT.isoformat().replace("+00:00", "Z"),
    }
    return key, {name: v for name, v in {**fields, **changes}.items() if v is not None}


class HasherProcess:
    """`headgate reconcile hasher` in a process of its own; its output goes to a log file."""

    def __init__(self, harness: HasherHarness, *options: str, home: Path | None = None) -> None:
        place: Place = harness.cassandra.place
        self.log = (home or harness.folder) / f"hasher-{next(_numbers)}.log"
        environ = {
            **os.environ,
            "BOOTSTRAP_SERVERS": harness.broker.bootstrap,
            "CASSANDRA_CONTACT_POINTS": ",".join(place.contact_points),
            "CASSANDRA_PORT": str(place.port),
            "HEADGATE_HOME": str(harness.folder / "home"),
            "TOPIC": harness.topic,
        }
        words = ("reconcile", "hasher", "business", "--metrics-port", "0", *options)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "headgate.cli.main", *words],
            cwd=write_project(harness),
            env=environ,
            stdout=self.log.open("wb"),
            stderr=subprocess.STDOUT,
            preexec_fn=die_with_parent(),
        )

    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(60)

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(120)

    def __enter__(self) -> HasherProcess:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(ProcessLookupError):
            self.kill()


def write_project(harness: HasherHarness) -> Path:
    """Write a project whose rule table `business` is the harness's, and return its folder."""
    folder = harness.folder / "project"
    (folder / "rules").mkdir(parents=True, exist_ok=True)
    (folder / "env").mkdir(exist_ok=True)
    for profile in (ROOT / "env").glob("*.env"):
        (folder / "env" / profile.name).write_bytes(profile.read_bytes())
    (folder / "contracts").mkdir(exist_ok=True)
    contract = "contracts/business_table.hash.yml"
    (folder / contract).write_bytes((ROOT / contract).read_bytes())
    text = (ROOT / "rules/topic1.yml").read_text()
    text = text.replace("topic: topic1\n", f"topic: {harness.topic}\n")
    text = text.replace("topic: topic2\n", f"topic: {harness.cloud_topic}\n")
    text = text.replace("cloud_keyspace.business_table", harness.table)
    (folder / "rules" / "topic1.yml").write_text(text)
    (folder / "pyproject.toml").touch()
    return folder


def run_in_background(work: Callable[[], object]) -> threading.Thread:
    """Call a function in a daemon thread."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread
