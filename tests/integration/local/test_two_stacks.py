"""Two stacks on one machine, started at the same moment on the default ports, stay apart."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.support.local_commands import LocalEnvironment
from tests.support.services import RunningBroker

from headgate.core.kafka.topics import Topics, read_cluster_id
from headgate.local.process import alive, wait_until
from headgate.local.state import LocalFiles

UP = ("local", "up", "--only", "broker")
RECORDS = {"first": 70, "second": 110}


class Stack(LocalEnvironment):
    """A stack of its own home whose ports nobody asked for."""

    def __init__(self, home: Path, topic: str) -> None:
        super().__init__(home)
        del self.environ["KAFKA_PORT"]
        self.topic = topic
        self.environ |= {"TOPIC": topic, "DLQ_TOPIC": f"{topic}-dlq"}

    @property
    def bootstrap(self) -> str:
        return LocalFiles(self.home).read_endpoints()["BOOTSTRAP_SERVERS"]

    def own_cluster_id(self) -> str | None:
        return read_cluster_id(self.home / "kafka")

    def send(self, count: int) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap, "acks": "all", "log_level": 0})
        for number in range(count):
            producer.produce(self.topic, str(number).encode())
        assert producer.flush(120) == 0


@pytest.fixture
def stacks(tmp_path: Path) -> Iterator[tuple[Stack, Stack]]:
    both = Stack(tmp_path / "a", "first"), Stack(tmp_path / "b", "second")
    try:
        yield both
    finally:
        stopping = [stack.start("local", "down") for stack in both]
        for process in stopping:
            _, err = process.communicate(timeout=300)
            assert process.returncode == 0, err


def start_at_once(stacks: tuple[Stack, Stack]) -> None:
    starting: list[subprocess.Popen[str]] = [stack.start(*UP) for stack in stacks]
    for process in starting:
        _, err = process.communicate(timeout=300)
        assert process.returncode == 0, err


def check_apart(stacks: tuple[Stack, Stack]) -> None:
    """Each stack's client reaches its own broker, and its records are in that one alone."""
    assert len({stack.bootstrap for stack in stacks}) == 2
    for stack in stacks:
        assert Topics(stack.bootstrap).cluster_id() == stack.own_cluster_id()
        stack.run("local", "health")
        stack.run("topics", "create")
        stack.send(RECORDS[stack.topic])
    for stack in stacks:
        topics = Topics(stack.bootstrap)
        spans = {name: topics.found(name).span for name in topics.names()}
        assert spans == {stack.topic: RECORDS[stack.topic], f"{stack.topic}-dlq": 0}


def test_two_that_start_at_once_are_each_on_their_own_broker(stacks):
    start_at_once(stacks)
    check_apart(stacks)


@pytest.mark.slow
@pytest.mark.parametrize("attempt", range(10))
def test_two_that_start_at_once_stay_apart_every_time(stacks, attempt):
    start_at_once(stacks)
    check_apart(stacks)


def test_a_stack_whose_services_are_gone_does_not_write_to_who_answers_there_now(
    tmp_path: Path, broker: RunningBroker
):
    """A killed supervisor leaves its addresses behind; another broker may listen there by then."""
    stack = Stack(tmp_path, "kept")
    stack.environ["KAFKA_PORT"] = "0"
    stack.run(*UP)
    files = LocalFiles(stack.home)
    pid, supervisor = stack.broker_pid(), files.supervisor_pid()
    assert supervisor is not None
    os.kill(supervisor, signal.SIGKILL)
    assert wait_until(lambda: not alive(pid), 60)
    files.write_endpoints({"BOOTSTRAP_SERVERS": broker.bootstrap})
    assert "is not running" in stack.run("topics", "create", code=8)
    files.lock.unlink()  # as if a supervisor ran where locks do not tell
    refusal = stack.run("topics", "create", code=8)
    assert f"the broker at {broker.bootstrap} is not this stack's own" in refusal
    assert "is not this stack's own" in stack.run("local", "health", code=8)
    assert "kept" not in broker.topics.names()
