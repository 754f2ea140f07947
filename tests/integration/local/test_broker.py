"""The embedded broker keeps what it acknowledged and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from confluent_kafka import Producer

from headgate.core.kafka.topics import Topics, TopicSpec
from headgate.core.runtime.ports import any_port
from headgate.errors import OperationError, UnavailableError
from headgate.local import kafka
from headgate.local.process import Child, alive, wait_until


def produce(bootstrap: str, topic: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "log_level": 0})
    for number in range(count):
        producer.produce(topic, str(number).encode())
    assert producer.flush(120) == 0


def span(topics: Topics, name: str) -> int:
    state = topics.describe(name)
    assert state is not None
    return state.span


def test_a_topic_is_created_once_and_described_with_its_id(broker):
    spec = TopicSpec("orders", partitions=3, retention_days=3)
    assert broker.topics.create([spec]) == ("orders",)
    assert broker.topics.create([spec]) == ()
    state = broker.topics.describe("orders")
    assert state is not None
    assert (state.partitions, state.span) == (3, 0)
    produce(broker.bootstrap, "orders", 100)
    assert span(broker.topics, "orders") == 100


def test_a_topic_made_again_has_another_id(broker):
    name = broker.new_topic()
    first = broker.topics.describe(name)
    assert broker.topics.delete([name]) == (name,)
    assert wait_until(lambda: name not in broker.topics.names(), 60)
    broker.topics.create([TopicSpec(name, 1, 1)])
    second = broker.topics.describe(name)
    assert first is not None
    assert second is not None
    assert first.topic_id != second.topic_id


def test_topics_are_not_made_by_asking_for_them(broker):
    assert broker.topics.describe("nobody-made-this") is None
    assert broker.topics.describe("nobody-made-this") is None
    assert "nobody-made-this" not in broker.topics.names()


def test_a_name_that_kafka_refuses_is_one_clear_error(broker):
    with pytest.raises(OperationError, match="could not be created") as caught:
        broker.topics.create([TopicSpec("not a name", 1, 1)])
    assert caught.value.why


def test_a_broker_that_is_away_is_named():
    away = Topics(f"127.0.0.1:{any_port()}", timeout=1.0)
    assert away.brokers() == 0
    with pytest.raises(UnavailableError) as caught:
        away.create([TopicSpec("orders", 1, 1)])
    assert "does not answer" in caught.value.why
    with pytest.raises(UnavailableError):
        away.describe("orders")


def test_a_killed_broker_comes_back_with_its_data(private_broker):
    name = private_broker.new_topic(partitions=3)
    before = private_broker.topics.describe(name)
    produce(private_broker.bootstrap, name, 10_000)
    private_broker.kill()
    started = time.monotonic()
    private_broker.restart()
    assert time.monotonic() - started < 20
    after = private_broker.topics.describe(name)
    assert before is not None
    assert after is not None
    assert (after.topic_id, after.span) == (before.topic_id, 10_000)


def test_a_broker_on_a_taken_port_says_so(broker, tmp_path):
    clash = kafka.Broker(tmp_path / "kafka", broker.broker.port, any_port(), tmp_path / "b.log")
    kafka.prepare(clash, broker.runtime)
    child = Child(kafka.command(clash, broker.runtime))
    try:
        assert wait_until(lambda: child.exit_code is not None, 240)
        why, _ = kafka.why_it_ended(clash.log, child.exit_code)
        assert why == "its port is in use"
    finally:
        child.kill()


PARENT = """
import sys, time
from pathlib import Path
from headgate.local.process import Child, Command
here = Path(sys.argv[1])
child = Child(Command(("sleep", "300"), here / "child.log", here))
print(child.pid, flush=True)
time.sleep(300)
"""


def test_a_child_dies_with_a_killed_parent(tmp_path: Path):
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    with parent.stdout:
        pid = int(parent.stdout.readline())
    assert alive(pid)
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    assert wait_until(lambda: not alive(pid), 60)
