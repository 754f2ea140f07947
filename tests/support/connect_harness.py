"""A Kafka Connect worker with our plugins, a Cassandra table and their topics."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from confluent_kafka import Consumer, Message, TopicPartition

from headgate.core.kafka.connect_rest import Connector
from headgate.core.kafka.topics import Topics, TopicSpec
from headgate.hashing.contract import HashContract, load_contract
from headgate.hashing.python import row_hash
from headgate.local.cassandra import LOCAL_DC, CassandraServer
from headgate.local.connect import ConnectServer
from headgate.local.process import wait_until
from headgate.local.service import Running
from headgate.reconcile.cassandra.connector import CloudTable, Cluster, Pace, own_connector
from headgate.reconcile.cassandra.session import Cassandra, Place, session_at

ROOT = Path(__file__).parents[2]
CONTRACT: HashContract = load_contract(ROOT / "contracts/business_table.hash.yml").value
COLUMNS = ("pk", "col1", "col2", "col3", "col4", "last_updated")
REBALANCING = 409
Row = Mapping[str, object]


@dataclass
class ConnectHarness:
    """One keyspace with its table, its output and dead-letter topics, and the worker that connects them."""

    bootstrap: str
    node: Running[CassandraServer]
    worker: Running[ConnectServer]
    cql: Cassandra
    keyspace: str
    deployed: list[str] = field(default_factory=list)

    @property
    def topic(self) -> str:
        return f"{self.keyspace}.topic2"

    @property
    def dead_letter_topic(self) -> str:
        return f"{self.keyspace}.dlq"

    @property
    def table(self) -> CloudTable:
        return CloudTable(self.keyspace, "business_table", CONTRACT, self.topic)

    def prepare(self) -> None:
        """Create the keyspace, the table and both topics."""
        self.cql.execute(
            f"CREATE KEYSPACE {self.keyspace} WITH replication ="
            " {'class': 'SimpleStrategy', 'replication_factor': 1}"
        )
        self.cql.execute(
            f"CREATE TABLE {self.keyspace}.business_table (pk text PRIMARY KEY, col1 text,"
            " col2 decimal, col3 timestamp, col4 double, last_updated timestamp)"
        )
        Topics(self.bootstrap).create(
            [
                TopicSpec(self.topic, 6, retention_days=1),
                TopicSpec(self.dead_letter_topic, 3, retention_days=1),
            ]
        )

    def write(self, rows: Sequence[Row], columns: Sequence[str] = COLUMNS) -> None:
        marks = ", ".join("?" for _ in columns)
        self.cql.write_many(
            f"INSERT INTO {self.keyspace}.business_table ({', '.join(columns)}) VALUES ({marks})",
            [[row.get(column) for column in columns] for row in rows],
        )

    def connector(self, pace: Pace | None = None, **changes: str) -> Connector:
        """Our source connector for this table; `changes` are settings, with `__` in place of a dot."""
        node = self.node.service
        cluster = Cluster(node.contact_points, node.port, LOCAL_DC, self.bootstrap)
        made = own_connector(
            self.table, cluster, pace or Pace(poll_ms=300, lag_ms=2_000), f"{self.keyspace}-source"
        )
        letters = {key: self.dead_letter_topic for key in made.config if key.endswith("dlq.topic")}
        given = {key.replace("__", "."): value for key, value in changes.items()}
        return replace(made, config={**made.config, **letters, **given})

    def connector_without(self, column: str, **changes: str) -> Connector:
        """Our connector, with a step before the hash that removes a hashed column from the record."""
        chain = self.connector().config["transforms"].replace("ComputeHash", "Lose,ComputeHash")
        lose = {
            "transforms": chain,
            "transforms__Lose__type": "org.apache.kafka.connect.transforms.ReplaceField$Value",
            "transforms__Lose__exclude": column,
        }
        return self.connector(None, **{**lose, **changes})

    def deploy(self, connector: Connector) -> tuple[int, str]:
        """PUT the connector's configuration; the HTTP status and body."""
        status, text = self.call("PUT", f"/connectors/{connector.name}/config", connector.config)
        if status < 300:
            self.deployed.append(connector.name)
        return status, text

    def call(self, method: str, path: str, body: object = None) -> tuple[int, str]:
        """Call the worker's REST API, again while it rebalances; the HTTP status and body."""
        limit = time.monotonic() + 120
        while True:
            status, text = self._once(method, path, body)
            if status != REBALANCING or time.monotonic() > limit:
                return status, text
            time.sleep(0.2)

    def _once(self, method: str, path: str, body: object) -> tuple[int, str]:
        request = Request(
            self.worker.service.url + path,
            None if body is None else json.dumps(body).encode(),
            {"Content-Type": "application/json"},
            method=method,
        )
        try:
            with urlopen(request, timeout=120) as answer:
                return answer.status, answer.read().decode()
        except HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def tasks(self, connector: Connector) -> list[dict[str, str]]:
        status, text = self.call("GET", f"/connectors/{connector.name}/status")
        return json.loads(text)["tasks"] if status == 200 else []

    def is_running(self, connector: Connector) -> bool:
        """Wait until all tasks of the connector run; whether they do."""
        return wait_until(
            lambda: {task["state"] for task in self.tasks(connector)} == {"RUNNING"}, 120
        )

    def counter(self, connector: Connector, bean: str, name: str) -> float:
        """The sum of a counter on the worker's Prometheus page; 0 while it is not there."""
        wanted = f'headgate_connect_{bean}_{name}_total{{connector="{connector.name}"'
        try:
            with urlopen(self.worker.service.metrics_url, timeout=60) as answer:
                lines = answer.read().decode().splitlines()
        except (URLError, HTTPException, OSError):
            return 0
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(wanted))

    def remove(self) -> None:
        for name in set(self.deployed):
            self.call("DELETE", f"/connectors/{name}")

    def messages(
        self, topic: str, enough: Callable[[list[Message]], bool], seconds: float = 120
    ) -> list[Message]:
        """Messages of the topic from its beginning, until they are enough or time is up."""
        found: list[Message] = []
        limit = time.monotonic() + seconds
        with _reading(self.bootstrap, topic) as consumer:
            while not enough(found) and time.monotonic() < limit:
                found += [m for m in consumer.consume(1_000, 0.2) if m.error() is None]
        return found


@contextmanager
def _reading(bootstrap: str, topic: str) -> Iterator[Consumer]:
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": "smt-tests",
        "enable.auto.commit": False,
    }
    consumer = Consumer(settings)
    try:
        partitions = consumer.list_topics(topic, timeout=60).topics[topic].partitions
        consumer.assign([TopicPartition(topic, p, 0) for p in partitions])
        yield consumer
    finally:
        consumer.close()


@contextmanager
def open_connect_harness(
    bootstrap: str, node: Running[CassandraServer], worker: Running[ConnectServer], keyspace: str
) -> Iterator[ConnectHarness]:
    """A keyspace, topics and connectors for one test; the connectors are removed at the end."""
    place = Place((node.service.contact_points,), node.service.port, LOCAL_DC)
    with session_at(place) as cql:
        made = ConnectHarness(bootstrap, node, worker, cql, keyspace)
        made.prepare()
        try:
            yield made
        finally:
            made.remove()


def row(number: int, **changes: object) -> dict[str, object]:
    """A row of the table whose values depend on its number."""
    made: dict[str, object] = {
        "pk": f"k{number:06d}",
        "col1": f"name|{number} é",
        "col2": Decimal(number) / 8,
        "col3": datetime(2024, 1, 31, 12, 30, 0, 123_000, UTC),
        "col4": number / 3,
        "last_updated": datetime.now(UTC),
    }
    return {**made, **changes}


def hash_of(values: Row) -> str:
    """The hash that the connector must send for this row, by the Python implementation."""
    return row_hash(CONTRACT, values)


def value_of(message: Message) -> dict[str, object]:
    return json.loads(message.value() or b"null")


def key_of(message: Message) -> str:
    return (message.key() or b"").decode()


def headers_of(message: Message) -> dict[str, str]:
    return {name: bytes(value or b"").decode() for name, value in message.headers() or []}  # pyright: ignore[reportArgumentType]  always bytes here


def keys_of(messages: Sequence[Message]) -> set[str]:
    return {key_of(message) for message in messages}
