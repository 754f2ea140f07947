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
    ConnectHarness,
    hash_of,
    headers_of,
    key_of,
    keys_of,
    open_connect_harness,
    row,
    value_of,
)
from tests.support.services import RunningBroker

from headgate.core.runtime.java_build import build_plugins
from headgate.local.cassandra import CassandraServer
from headgate.local.connect import ConnectServer
from headgate.local.process import wait_until
from headgate.local.service import Running

NUMBERS = itertools.count()


@pytest.fixture
def harness(
    broker: RunningBroker, cassandra: Running[CassandraServer], connect: Running[ConnectServer]
) -> Iterator[ConnectHarness]:
    """A test that kills the worker or Cassandra starts it again."""
    with open_connect_harness(
        broker.bootstrap, cassandra, connect, f"outage{next(NUMBERS)}"
    ) as made:
        yield made


@pytest.fixture
def alone(
    private_broker: RunningBroker, cassandra: Running[CassandraServer], tmp_path: Path
) -> Iterator[ConnectHarness]:
    """A worker on a broker that the test may kill."""
    plugins = build_plugins(ROOT / "java/connect-plugins").folder
    server = ConnectServer(tmp_path / "connect", private_broker.bootstrap, plugins)
    bootstrap = private_broker.bootstrap
    with (
        Running(server) as worker,
        open_connect_harness(bootstrap, cassandra, worker, "outage_alone") as made,
    ):
        yield made


@pytest.mark.slow
def test_kill_9_of_connect_loses_no_row(harness: ConnectHarness) -> None:
    harness.deploy(harness.connector())
    written: list[dict[str, object]] = []
    done = threading.Event()

    def keep_writing() -> None:
        for number in range(6_000):
            written.append(row(number))
            harness.write(written[-1:])
            if done.is_set():
                return

    writer = threading.Thread(target=keep_writing)
    writer.start()
    try:
        for _ in range(3):
            time.sleep(2)
            harness.worker.kill()
            time.sleep(1)
            harness.worker.restart()
    finally:
        done.set()
        writer.join()
    wanted = {str(r["pk"]): hash_of(r) for r in written}
    found = harness.messages(harness.topic, lambda got: keys_of(got) >= set(wanted), seconds=60)
    assert {key_of(m): value_of(m)["hash_cloud"] for m in found} == wanted


@pytest.mark.slow
def test_an_outage_of_cassandra_makes_one_dead_letter_and_no_gap(harness: ConnectHarness) -> None:
    connector = harness.connector(request__timeout__ms="1000", splits="2")
    harness.write([row(1)])
    harness.deploy(connector)
    harness.messages(harness.topic, lambda got: len(got) >= 1)
    harness.node.kill()
    assert wait_until(lambda: harness.counter(connector, "cassandrapoll", "timeouts") >= 2, 60)
    letters = harness.messages(harness.dead_letter_topic, lambda got: len(got) >= 1)
    assert headers_of(letters[0])["headgate.stage"] == "Cassandra"
    assert headers_of(letters[0])["headgate.reason_code"] == "dq_cassandra_timeout"
    harness.node.restart()
    assert wait_until(lambda: _written(harness, row(2)), 30)
    assert "k000002" in keys_of(
        harness.messages(harness.topic, lambda got: "k000002" in keys_of(got), 60)
    )
    assert {task["state"] for task in harness.tasks(connector)} == {"RUNNING"}
    tasks = len(harness.tasks(connector))
    assert len(harness.messages(harness.dead_letter_topic, lambda _: False, 1)) <= tasks, (
        "one a task"
    )


def _written(harness: ConnectHarness, values: dict[str, object]) -> bool:
    try:
        harness.write([values])
    except Exception:
        return False
    return True


@pytest.mark.slow
def test_a_connector_deployed_while_cassandra_is_away_works_when_it_comes(
    harness: ConnectHarness,
) -> None:
    harness.write([row(1)])
    time.sleep(0.5)  # the commit log is synced every tenth of a second
    harness.node.kill()
    connector = harness.connector(request__timeout__ms="1000")
    assert harness.deploy(connector)[0] == 201
    assert wait_until(lambda: harness.counter(connector, "cassandrapoll", "timeouts") >= 1, 60)
    harness.node.restart()
    assert keys_of(harness.messages(harness.topic, lambda got: len(got) >= 1, 60)) == {"k000001"}
    assert {task["state"] for task in harness.tasks(connector)} == {"RUNNING"}


@pytest.mark.slow
def test_a_letter_that_cannot_be_written_fails_the_task_even_where_errors_are_tolerated(
    harness: ConnectHarness,
) -> None:
    harness.write([row(1)])
    changes: dict[str, str] = {
        "errors__tolerance": "all",
        "transforms__ComputeHash__dlq__topic": "nowhere",
        "transforms__ComputeHash__dlq__timeout__ms": "1000",
    }
    connector = harness.connector_without("col4", **changes)
    harness.deploy(connector)
    assert wait_until(lambda: any(t["state"] == "FAILED" for t in harness.tasks(connector)), 40)
    trace = next(t["trace"] for t in harness.tasks(connector) if t["state"] == "FAILED")
    assert "a dead letter could not be written to nowhere" in trace
    # Mended, the record is there still: its offset was never stored.
    harness.deploy(harness.connector(errors__tolerance="all"))
    harness.call("POST", f"/connectors/{connector.name}/restart?includeTasks=true&onlyFailed=true")
    assert keys_of(harness.messages(harness.topic, lambda got: len(got) >= 1, 40)) == {"k000001"}


@pytest.mark.slow
def test_a_broker_that_is_away_at_a_bad_record_needs_no_hand(
    alone: ConnectHarness, private_broker: RunningBroker
) -> None:
    connector = alone.connector_without("col4")
    alone.deploy(connector)
    assert wait_until(lambda: {t["state"] for t in alone.tasks(connector)} == {"RUNNING"}, 40)
    private_broker.kill()
    alone.write([row(1)])
    time.sleep(35)  # the default of a producer that gives up at half a minute would show
    private_broker.restart()
    (letter,) = alone.messages(alone.dead_letter_topic, lambda got: len(got) >= 1, 60)
    assert headers_of(letter)["headgate.stage"] == "SMT"
    assert {t["state"] for t in alone.tasks(connector)} == {"RUNNING"}
