"""Nothing is lost when Connect is killed, when Cassandra is away, or when a letter cannot be sent."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.connect_harness import (
    ROOT,
    Rig,
    hash_of,
    headers_of,
    key_of,
    keys,
    rig,
    row,
    until,
    value_of,
)
from tests.support.services import RunningBroker

from headgate.feeds.connect.build import build_plugins
from headgate.local.cassandra import CassandraServer
from headgate.local.connect import ConnectServer
from headgate.local.service import Running

NUMBERS = itertools.count()


@pytest.fixture
def own(
    broker: RunningBroker, cassandra: Running[CassandraServer], connect: Running[ConnectServer]
) -> Iterator[Rig]:
    """A test that kills the worker or Cassandra starts it again."""
    with rig(broker.bootstrap, cassandra, connect, f"outage{next(NUMBERS)}") as made:
        yield made


@pytest.fixture
def alone(
    private_broker: RunningBroker, cassandra: Running[CassandraServer], tmp_path: Path
) -> Iterator[Rig]:
    """A worker on a broker that the test may kill."""
    plugins = build_plugins(ROOT / "connect").folder
    server = ConnectServer(tmp_path / "connect", private_broker.bootstrap, plugins)
    bootstrap = private_broker.bootstrap
    with Running(server) as worker, rig(bootstrap, cassandra, worker, "outage_alone") as made:
        yield made


@pytest.mark.slow
def test_kill_9_of_connect_loses_no_row(own: Rig) -> None:
    own.deploy(own.connector())
    written: list[dict[str, object]] = []
    done = threading.Event()

    def keep_writing() -> None:
        for number in range(6_000):
            written.append(row(number))
            own.write(written[-1:])
            if done.is_set():
                return

    writer = threading.Thread(target=keep_writing)
    writer.start()
    try:
        for _ in range(3):
            time.sleep(2)
            own.worker.kill()
            time.sleep(1)
            own.worker.restart()
    finally:
        done.set()
        writer.join()
    wanted = {str(r["pk"]): hash_of(r) for r in written}
    found = own.messages(own.topic, lambda got: keys(got) >= set(wanted), seconds=60)
    assert {key_of(m): value_of(m)["hash_cloud"] for m in found} == wanted


@pytest.mark.slow
def test_an_outage_of_cassandra_makes_one_dead_letter_and_no_gap(own: Rig) -> None:
    connector = own.connector(request__timeout__ms="1000", splits="2")
    own.write([row(1)])
    own.deploy(connector)
    own.messages(own.topic, lambda got: len(got) >= 1)
    own.node.kill()
    assert until(lambda: own.counter(connector, "cassandrapoll", "timeouts") >= 2, 60)
    letters = own.messages(own.letters_topic, lambda got: len(got) >= 1)
    assert headers_of(letters[0])["headgate.stage"] == "Cassandra"
    assert headers_of(letters[0])["headgate.reason_code"] == "dq_cassandra_timeout"
    own.node.restart()
    assert until(lambda: _written(own, row(2)), 30)
    assert "k000002" in keys(own.messages(own.topic, lambda got: "k000002" in keys(got), 60))
    assert {task["state"] for task in own.tasks(connector)} == {"RUNNING"}
    tasks = len(own.tasks(connector))
    assert len(own.messages(own.letters_topic, lambda _: False, 1)) <= tasks, "one a task"


def _written(own: Rig, values: dict[str, object]) -> bool:
    try:
        own.write([values])
    except Exception:
        return False
    return True


@pytest.mark.slow
def test_a_connector_deployed_while_cassandra_is_away_works_when_it_comes(own: Rig) -> None:
    own.write([row(1)])
    time.sleep(0.5)  # the commit log is synced every tenth of a second
    own.node.kill()
    connector = own.connector(request__timeout__ms="1000")
    assert own.deploy(connector)[0] == 201
    assert until(lambda: own.counter(connector, "cassandrapoll", "timeouts") >= 1, 60)
    own.node.restart()
    assert keys(own.messages(own.topic, lambda got: len(got) >= 1, 60)) == {"k000001"}
    assert {task["state"] for task in own.tasks(connector)} == {"RUNNING"}


@pytest.mark.slow
def test_a_letter_that_cannot_be_written_fails_the_task_even_where_errors_are_tolerated(
    own: Rig,
) -> None:
    own.write([row(1)])
    changes: dict[str, str] = {
        "errors__tolerance": "all",
        "transforms__ComputeHash__dlq__topic": "nowhere",
        "transforms__ComputeHash__dlq__timeout__ms": "1000",
    }
    connector = own.lacking("col4", **changes)
    own.deploy(connector)
    assert until(lambda: any(t["state"] == "FAILED" for t in own.tasks(connector)), 40)
    trace = next(t["trace"] for t in own.tasks(connector) if t["state"] == "FAILED")
    assert "a dead letter could not be written to nowhere" in trace
    # Mended, the record is there still: its offset was never stored.
    own.deploy(own.connector(errors__tolerance="all"))
    own.call("POST", f"/connectors/{connector.name}/restart?includeTasks=true&onlyFailed=true")
    assert keys(own.messages(own.topic, lambda got: len(got) >= 1, 40)) == {"k000001"}


@pytest.mark.slow
def test_a_broker_that_is_away_at_a_bad_record_needs_no_hand(
    alone: Rig, private_broker: RunningBroker
) -> None:
    connector = alone.lacking("col4")
    alone.deploy(connector)
    assert until(lambda: {t["state"] for t in alone.tasks(connector)} == {"RUNNING"}, 40)
    private_broker.kill()
    alone.write([row(1)])
    time.sleep(35)  # the default of a producer that gives up at half a minute would show
    private_broker.restart()
    (letter,) = alone.messages(alone.letters_topic, lambda got: len(got) >= 1, 60)
    assert headers_of(letter)["headgate.stage"] == "SMT"
    assert {t["state"] for t in alone.tasks(connector)} == {"RUNNING"}
