"""What integration tests share: one private broker a session, on free ports, gone at the end."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pytest
from tests.support.postgres import place_in

from headgate.engine.topics import Topics, TopicSpec
from headgate.errors import UnavailableError
from headgate.feeds.connect.build import build_plugins
from headgate.feeds.events.database import Place
from headgate.local import kafka
from headgate.local.cassandra import CassandraServer
from headgate.local.connect import ConnectServer
from headgate.local.postgres import PostgresServer
from headgate.local.process import Child, any_port, wait_until
from headgate.local.service import Running, Service

# Each waits only until its service answers; beside other tests a JVM may take minutes to start.
READY_SECONDS = 240
# Between the choice of a port and the start of a server on it somebody else may take it.
TRIES, PORT_TAKEN = 3, "its port is in use"
Kind = TypeVar("Kind", bound=Service)

from tests.support.pipeline import *  # noqa: F403, E402  # pytest finds fixtures by their names in this module


@dataclass
class RunningBroker:
    """A broker of this test session that tests may also kill and start again."""

    broker: kafka.Broker
    runtime: kafka.Runtime
    child: Child
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    @property
    def bootstrap(self) -> str:
        return self.broker.bootstrap

    @property
    def topics(self) -> Topics:
        return Topics(self.bootstrap)

    def new_topic(self, partitions: int = 1, prefix: str = "topic") -> str:
        """A topic of its own for one test."""
        name = f"{prefix}-{next(self._numbers)}"
        self.topics.create([TopicSpec(name, partitions, retention_days=1)])
        return name

    def kill(self) -> None:
        """What `kill -9` does."""
        self.child.kill()

    def restart(self) -> None:
        """Start it again on the same ports and data, and wait until it answers."""
        self.child = start(self.broker, self.runtime)

    def stop(self) -> None:
        kafka.stop(self.broker, self.runtime, self.child)


def tried(broker: kafka.Broker, runtime: kafka.Runtime) -> tuple[Child, str]:
    """The broker's process once it answers, or why it did not."""
    child = Child(kafka.command(broker, runtime))
    if not wait_until(lambda: kafka.ready(broker) or child.exit_code is not None, READY_SECONDS):
        child.kill()
    if child.exit_code is None:
        return child, ""
    why, _ = kafka.why_it_ended(broker.log, child.exit_code, child.log_from)
    return child, why


def start(broker: kafka.Broker, runtime: kafka.Runtime) -> Child:
    child, why = tried(broker, runtime)
    assert not why, f"the broker did not start: {why}"
    return child


def start_broker(home: Path, tries: int = TRIES) -> RunningBroker:
    port = any_port()
    place = kafka.Broker(home / "kafka", port, any_port([port]), home / "logs" / "broker.log")
    runtime = kafka.kafka_runtime()
    kafka.prepare(place, runtime)
    child, why = tried(place, runtime)
    if why == PORT_TAKEN and tries > 1:
        return start_broker(home, tries - 1)
    assert not why, f"the broker did not start: {why}"
    return RunningBroker(place, runtime, child)


def started(make: Callable[[], Kind], tries: int = TRIES) -> Running[Kind]:
    """The service that is made, running; each that is made chooses its own ports."""
    try:
        return Running(make(), READY_SECONDS).start()
    except UnavailableError as error:
        if error.why != PORT_TAKEN or tries == 1:
            raise
    return started(make, tries - 1)


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """The session's broker. A run that is killed takes it along: the kernel ends it."""
    running = start_broker(tmp_path_factory.mktemp("the broker"))
    try:
        yield running
    finally:
        running.stop()


@pytest.fixture
def private_broker(tmp_path: Path) -> Iterator[RunningBroker]:
    """A broker for one test that kills it."""
    running = start_broker(tmp_path)
    try:
        yield running
    finally:
        running.stop()


@pytest.fixture(scope="session")
def cassandra(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running[CassandraServer]]:
    """The session's Cassandra, started by the first test that asks for it."""
    folder = tmp_path_factory.mktemp("the cassandra")
    with started(lambda: CassandraServer(folder)) as node:
        yield node


@pytest.fixture(scope="session")
def connect(
    broker: RunningBroker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running[ConnectServer]]:
    """The session's Kafka Connect, with our own plugins, on the session's broker."""
    plugins = build_plugins(Path("connect")).folder
    folder = tmp_path_factory.mktemp("the connect")
    with started(lambda: ConnectServer(folder, broker.bootstrap, plugins)) as worker:
        yield worker


@pytest.fixture
def private_cassandra(tmp_path: Path) -> Iterator[Running[CassandraServer]]:
    """A Cassandra for one test that kills it."""
    with started(lambda: CassandraServer(tmp_path / "cassandra")) as node:
        yield node


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running[PostgresServer]]:
    """A PostgreSQL for the tests of one file."""
    folder = tmp_path_factory.mktemp("the postgres")
    with started(lambda: PostgresServer(folder)) as server:
        yield server


@pytest.fixture(scope="module")
def events_place(postgres: Running[PostgresServer]) -> Place:
    """Where clients find the events' database of that PostgreSQL."""
    return place_in(postgres.service)
