"""`headgate local` from the command line, with the broker alone."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator

import pytest
from tests.support.local_commands import LocalEnvironment

from headgate.local.process import alive, wait_until


@pytest.fixture(scope="module")
def local(tmp_path_factory) -> Iterator[LocalEnvironment]:
    local = LocalEnvironment(tmp_path_factory.mktemp("home"))
    try:
        yield local
    finally:
        local.run("local", "down")


@pytest.fixture
def running(local: LocalEnvironment) -> LocalEnvironment:
    if not local.is_ready():
        local.run("local", "up", "--only", "broker")
    return local


def test_two_that_start_at_once_start_one_broker(local):
    processes = [local.start("local", "up", "--only", "broker") for _ in range(2)]
    for process in processes:
        _, err = process.communicate(timeout=300)
        assert process.returncode == 0, err
    assert local.is_ready()
    starts = (local.home / "logs" / "broker.log").read_text().count("Kafka Server started")
    assert starts == 1


def test_up_again_changes_nothing(running):
    before = running.broker()
    running.run("local", "up", "--only", "broker")
    assert running.broker() == before
    items = json.loads(running.run("-o", "json", "local", "status"))["items"]
    assert [(i["service"], i["state"]) for i in items] == [
        ("broker", "ready"),
        ("engine", "stopped"),
    ]


def test_topics_are_created_once_and_shown(running):
    assert json.loads(running.run("-o", "json", "topics", "create"))["items"] == [
        {"topic": "orders", "created": True},
        {"topic": "orders-dlq", "created": True},
    ]
    again = json.loads(running.run("-o", "json", "topics", "create"))["items"]
    assert [item["created"] for item in again] == [False, False]
    shown = json.loads(running.run("-o", "json", "topics", "show"))["items"]
    assert {item["topic"]: item["partitions"] for item in shown} == {"orders": 3, "orders-dlq": 1}
    running.run("topics", "delete", code=2)
    running.run("topics", "delete", "--yes")
    assert running.run("topics", "show").strip() == "(nothing)"


def test_a_broker_that_dies_is_started_again_on_its_port(running):
    before = running.broker()
    os.kill(before.pid, signal.SIGKILL)
    assert wait_until(lambda: running.broker().restarts == 1 and running.is_ready(), 240)
    assert running.broker().address == before.address
    assert running.broker().pid != before.pid
    running.run("local", "health")


def test_a_killed_supervisor_leaves_no_orphan(running):
    pid = running.broker_pid()
    os.kill(int((running.home / "local.lock").read_text()), signal.SIGKILL)
    assert wait_until(lambda: not alive(pid), 60)
    assert "away: broker" in running.run("local", "health", code=8)
    running.run("local", "up", "--only", "broker")
    assert running.is_ready()


def test_a_named_port_in_use_is_one_clear_error_and_nothing_stays(running, tmp_path):
    other = LocalEnvironment(tmp_path)
    other.environ["KAFKA_PORT"] = running.environ["KAFKA_PORT"]
    words = other.run("local", "up", "--only", "broker", code=8)
    assert f"port {other.environ['KAFKA_PORT']} is in use" in words
    assert other.broker() is None
    assert not (tmp_path / "endpoints.env").exists()


def test_down_keeps_data_and_removes_addresses(running):
    running.run("topics", "create")
    assert (running.home / "endpoints.env").is_file()
    running.run("local", "down")
    assert not (running.home / "endpoints.env").exists()
    assert "not running" in running.run("local", "health", code=8)
    running.run("local", "up", "--only", "broker")
    assert "orders-dlq" in running.run("topics", "show")


def test_data_are_removed_only_when_confirmed(running):
    running.run("local", "down", "--remove-data", code=2)
    assert running.is_ready()
    running.run("local", "down", "--remove-data", "--yes")
    assert not (running.home / "kafka").exists()
