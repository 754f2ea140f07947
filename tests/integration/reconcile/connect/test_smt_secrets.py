"""A password that a connector refers to: the worker knows it, and nobody who looks at it does."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.connect_harness import (
    ROOT,
    ConnectHarness,
    keys_of,
    open_connect_harness,
    row,
)
from tests.support.services import RunningBroker

from headgate.cli.connect import REFERRED
from headgate.core.runtime.java_build import build_plugins
from headgate.local.cassandra import CassandraServer
from headgate.local.connect import ConnectServer
from headgate.local.process import wait_until
from headgate.local.service import Running

CANARY = "canary_9c41"
NUMBERS = itertools.count()


@pytest.fixture
def harness(
    broker: RunningBroker, cassandra: Running[CassandraServer], tmp_path: Path
) -> Iterator[ConnectHarness]:
    plugins = build_plugins(ROOT / "java/connect-plugins").folder
    secrets, name = {"CASSANDRA_PASSWORD": CANARY}, f"smt_secrets{next(NUMBERS)}"
    server = ConnectServer(
        tmp_path / "connect", broker.bootstrap, plugins, group=name, secrets=secrets
    )
    with (
        Running(server) as worker,
        open_connect_harness(broker.bootstrap, cassandra, worker, name) as made,
    ):
        yield made


@pytest.mark.slow
def test_the_password_stands_on_no_topic_in_no_answer_and_in_no_log(
    harness: ConnectHarness,
) -> None:
    harness.write([row(1)])
    connector = harness.connector(username="reader", password=REFERRED)
    assert harness.deploy(connector)[0] == 201
    assert keys_of(harness.messages(harness.topic, lambda got: len(got) >= 1)) == {"k000001"}
    told = [
        harness.call("GET", f"/connectors/{connector.name}{path}")[1] for path in ("", "/tasks")
    ]
    told += [harness.call("GET", f"/connectors/{connector.name}/config")[1]]
    told += [harness.worker.service.log.read_text()]
    for topic in ("configs", "offsets", "status"):
        stored = harness.messages(f"{harness.keyspace}-{topic}", lambda _: False, 1)
        told += [str(message.value()) for message in stored]
    assert any(REFERRED in text for text in told)
    assert [text for text in told if CANARY in text] == []


@pytest.mark.slow
def test_the_worker_fills_in_the_reference_and_no_other_variable(harness: ConnectHarness) -> None:
    harness.deploy(harness.connector(table=REFERRED))
    assert wait_until(
        lambda: f"no table {harness.keyspace}.{CANARY}" in str(harness.tasks(harness.connector())),
        120,
    )
    harness.deploy(harness.connector(table="${env:PATH}"))
    assert wait_until(lambda: ".${env:PATH}" in str(harness.tasks(harness.connector())), 120)
