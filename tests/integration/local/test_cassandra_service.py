"""The embedded Cassandra: it starts, is killed, comes back with its data, and says why it cannot."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time

import pytest
from tests.support.cassandra_session import KEYSPACE, open_session
from tests.support.local_commands import LocalEnvironment
from tests.support.services import READY_SECONDS

from headgate.core.runtime.ports import any_port
from headgate.errors import UnavailableError
from headgate.local.cassandra import CassandraServer, answers
from headgate.local.process import wait_until
from headgate.local.service import Running
from headgate.local.state import CASSANDRA, LocalFiles


def test_a_killed_node_comes_back_with_every_row(cassandra):
    port = cassandra.service.port
    with open_session(port) as rows:
        rows.execute(f"CREATE KEYSPACE kept {KEYSPACE}")
        rows.execute("CREATE TABLE kept.rows (pk int PRIMARY KEY, words text)")
        for number in range(200):
            rows.execute("INSERT INTO kept.rows (pk, words) VALUES (%s, %s)", (number, "é|"))
        # Its commit log is synced every 100 ms. A write that finds the last sync one and a half times
        # as old waits for the next: once this one is through, all before the pause are synced.
        time.sleep(0.5)
        rows.execute("INSERT INTO kept.rows (pk, words) VALUES (%s, %s)", (-1, "after the pause"))
    cassandra.kill()
    assert not answers(port)
    cassandra.restart()
    with open_session(port) as rows:
        found = rows.execute("SELECT pk, words FROM kept.rows").all()
    kept = sorted((row.pk, row.words) for row in found if row.pk >= 0)
    assert kept == [(n, "é|") for n in range(200)]


@pytest.mark.slow
def test_a_second_node_on_the_same_port_says_that_it_is_taken(cassandra, tmp_path):
    second = Running(CassandraServer(tmp_path, port=cassandra.service.port), READY_SECONDS)
    assert answers(second.service.port), "the first one answers there"
    with pytest.raises(UnavailableError) as refused, second:
        pass
    assert refused.value.why == "its port is in use"


@pytest.mark.slow
def test_the_supervisor_restarts_a_killed_node_on_its_port(tmp_path):
    local = LocalEnvironment(tmp_path)
    local.environ["CASSANDRA_PORT"] = str(any_port())
    files = LocalFiles(local.home)

    def node():
        state = files.read_state()
        found = state.service(CASSANDRA) if state else None
        assert found is not None
        return found

    local.run("local", "up", "--only", "cassandra")
    try:
        before = node()
        assert before.address == f"127.0.0.1:{local.environ['CASSANDRA_PORT']}"
        assert f"CASSANDRA_PORT={local.environ['CASSANDRA_PORT']}" in files.endpoints.read_text()
        assert before.pid is not None
        os.kill(before.pid, signal.SIGKILL)
        assert wait_until(lambda: node().restarts == 1 and node().state == "ready", 240)
        assert node().address == before.address
        assert "cassandra" in local.run("local", "health")
    finally:
        local.run("local", "down", "--remove-data", "--yes")
    assert not (tmp_path / "cassandra").exists()


def answering(reply: bytes) -> int:
    """A server that takes one connection and answers so."""
    server = socket.create_server(("127.0.0.1", 0))
    port = int(server.getsockname()[1])

    def serve() -> None:
        with server, server.accept()[0] as connection:
            connection.recv(64)
            connection.sendall(reply)

    threading.Thread(target=serve, daemon=True).start()
    return port


def test_a_node_answers_in_its_own_protocol_or_it_does_not_count():
    ready = bytes([0x84, 0, 0, 0, 0x02, 0, 0, 0, 0])
    login = bytes([0x84, 0, 0, 0, 0x03, 0, 0, 0, 0])
    fault = bytes([0x84, 0, 0, 0, 0x00, 0, 0, 0, 0])
    assert answers(answering(ready), 60)
    assert answers(answering(login), 60)
    assert not answers(answering(fault), 60)
    assert not answers(answering(b"HTTP/1.1 400 Bad Request\r\n\r\n"), 60)
    assert not answers(answering(b""), 60)
    assert not answers(any_port())
