"""Sinks and endpoint over real sockets of this machine; no broker and no Spark."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import orjson
import pytest
from click.testing import CliRunner
from tests.support.metric_windows import JOB, RECORD, SHAPE, event_time, settle_batch

from headgate.cli.main import cli
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.metrics import sinks as dogstatsd
from headgate.core.metrics.delivery import Change
from headgate.core.metrics.prometheus import CONTENT_TYPE, MetricsServer
from headgate.core.metrics.readings import Readings
from headgate.core.metrics.sinks import DogStatsd, HttpPush, body, encoded
from headgate.core.metrics.windows import Emitter, WindowSums, messages
from headgate.errors import OperationError, UnavailableError

pytestmark = pytest.mark.integration
TOKEN = "secret-token-1"
CHANGES = [Change(RECORD, {})]


@dataclass
class Receiver:
    """What a receiver got, and how it answers."""

    url: str = ""
    status: int = 200
    most: int = 1_000_000
    location: str = ""
    bodies: list[Any] = field(default_factory=list)
    tokens: list[str | None] = field(default_factory=list)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    found = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            found.tokens.append(self.headers["Authorization"])
            fits = len(content) <= found.most
            if fits and found.status == 200:
                found.bodies.append(orjson.loads(content))
            self.send_response(found.status if fits else 413)
            if found.location:
                self.send_header("Location", found.location)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Silent."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        found.url = f"http://127.0.0.1:{server.server_port}/metrics"
        yield found
        server.shutdown()
        thread.join()


def test_windows_arrive_as_one_array_with_the_token(receiver: Receiver) -> None:
    HttpPush(receiver.url, TOKEN).send(CHANGES * 2)
    assert receiver.bodies == [[*messages(RECORD)] * 2]
    assert receiver.tokens == [f"Bearer {TOKEN}"]


def test_without_a_token_none_is_sent(receiver: Receiver) -> None:
    HttpPush(receiver.url).send(CHANGES)
    assert receiver.tokens == [None]


@pytest.mark.parametrize("status", [400, 401, 500, 503])
def test_a_receiver_that_does_not_take_them_is_an_error(receiver: Receiver, status: int) -> None:
    receiver.status = status
    with pytest.raises(OperationError, match="did not take") as raised:
        HttpPush(receiver.url, TOKEN).send(CHANGES)
    assert str(status) in raised.value.why
    assert TOKEN not in raised.value.one_line


def test_what_is_too_large_is_sent_in_halves(receiver: Receiver) -> None:
    receiver.most = 2 * len(body(CHANGES))
    HttpPush(receiver.url).send(CHANGES * 5)
    assert [len(array) for array in receiver.bodies] == [2, 1, 2]


def test_the_token_is_not_carried_to_another_place(receiver: Receiver) -> None:
    receiver.status, receiver.location = 307, "http://127.0.0.1:9/elsewhere"
    with pytest.raises(OperationError, match="did not take"):
        HttpPush(receiver.url, TOKEN).send(CHANGES)


def test_a_receiver_that_is_away_is_said_without_its_secrets() -> None:
    push = HttpPush("http://user:hidden@127.0.0.1:9/x?token=hidden2", TOKEN, timeout=1)
    with pytest.raises(UnavailableError, match="is away") as raised:
        push.send(CHANGES)
    assert not [word for word in ("hidden", TOKEN) if word in raised.value.one_line]


def test_nothing_to_send_is_no_request(receiver: Receiver) -> None:
    HttpPush(receiver.url).send([])
    assert receiver.tokens == []


@pytest.fixture
def agent() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as agent:
        agent.bind(("127.0.0.1", 0))
        agent.settimeout(60)
        yield agent


def test_an_agent_hears_the_window(agent: socket.socket) -> None:
    sink = DogStatsd(f"127.0.0.1:{agent.getsockname()[1]}")
    sink.ready()
    sink.send([Change(RECORD, {})])
    sink.close()
    assert agent.recv(9999).decode().splitlines() == list(encoded(Change(RECORD, {})))


def test_an_agent_hears_the_window_at_a_socket_file(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as agent:
        agent.bind(str(tmp_path / "agent"))
        agent.settimeout(60)
        sink = DogStatsd(f"unix://{tmp_path / 'agent'}")
        sink.ready()
        sink.send([Change(RECORD, {})])
        sink.close()
        assert b"dq_error_total:3|c" in agent.recv(9999)


def test_a_backlog_goes_through_a_socket_file_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A socket file holds some ten datagrams; the agent reads while they are sent."""
    monkeypatch.setattr(dogstatsd, "SECONDS_TO_WAIT", 60.0)  # this agent does read, if slowly
    changes = [Change(replace(RECORD, table_name=f"t{n}"), {}) for n in range(300)]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as agent:
        agent.bind(str(tmp_path / "agent"))
        agent.settimeout(60)
        sink = DogStatsd(f"unix://{tmp_path / 'agent'}")
        sink.ready()
        sending = threading.Thread(target=sink.send, args=(changes,))
        sending.start()
        wanted = [line for change in changes for line in encoded(change)]
        heard: list[str] = []
        while len(heard) < len(wanted):
            heard += agent.recv(9999).decode().splitlines()
        sending.join(60)
        sink.close()
    assert heard == wanted


def test_an_agent_that_does_not_read_holds_nobody_up(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as agent:
        agent.bind(str(tmp_path / "agent"))
        sink = DogStatsd(f"unix://{tmp_path / 'agent'}")
        sink.ready()
        began = time.monotonic()
        sink.send([Change(RECORD, {})] * 300)
        # It waits for the first datagram without room, and not for each of ninety.
        assert time.monotonic() - began < 5
        sink.close()


def test_an_agent_that_is_away_is_no_error(agent: socket.socket) -> None:
    address = agent.getsockname()
    sink = DogStatsd(f"127.0.0.1:{address[1]}")
    agent.close()
    sink.ready()
    for _ in range(3):
        sink.send([Change(RECORD, {})])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as back:
        back.bind(address)
        back.settimeout(60)
        sink.send([Change(RECORD, {})])
        sink.send([Change(RECORD, {})])
        assert b"|c" in back.recv(65_535)
    sink.close()


def test_an_address_that_leads_nowhere_is_said(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="cannot be reached") as raised:
        DogStatsd(f"unix://{tmp_path / 'none'}").ready()
    assert "DOGSTATSD_ADDRESS" in raised.value.fix


@pytest.fixture
def store(tmp_path: Path) -> Iterator[OpsStore]:
    with OpsStore.open(f"sqlite:///{tmp_path / 'ops.db'}") as store:
        yield store


def test_the_endpoint_answers_on_this_machine_and_takes_the_next_free_port(
    store: OpsStore,
) -> None:
    first = MetricsServer(0, Readings(store))
    second = MetricsServer(first.port, Readings(store))
    try:
        assert second.port > first.port
        first.start()
        second.start()
        with urlopen(f"http://127.0.0.1:{second.port}/metrics") as answer:
            assert answer.headers["Content-Type"] == CONTENT_TYPE
            assert b"headgate_running_jobs 0\n" in answer.read()
        with pytest.raises(HTTPError, match="404") as raised:
            urlopen(f"http://127.0.0.1:{first.port}/other")
        raised.value.close()
    finally:
        first.close()
        second.close()


def test_send_says_which_sink_is_away_and_sends_to_it_again_later(
    store: OpsStore, receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADGATE_HOME", str(tmp_path))
    monkeypatch.setenv("METRICS_PUSH_TOKEN", TOKEN)
    store.register_sink("http")
    settle_batch(store, 0, {0: event_time(0)})
    sums = WindowSums(1, {}, {}, (), "r1")
    Emitter(store, SHAPE, lambda s: dict.fromkeys(s, sums)).close_due(everything=True)
    monkeypatch.setenv("METRICS_PUSH_URL", "http://127.0.0.1:9/")
    away = CliRunner().invoke(cli, ["metrics", "send", "--sink", "http"])
    assert isinstance(away.exception, UnavailableError)
    assert TOKEN not in away.output + away.exception.one_line
    monkeypatch.setenv("METRICS_PUSH_URL", receiver.url)
    for again in ([], ["--again"]):
        done = CliRunner().invoke(cli, ["metrics", "send", "--sink", "http", *again])
        assert (done.exception, done.exit_code) == (None, 0)
    assert [array[0]["id"] for array in receiver.bodies] == [
        f"{JOB}/2026-01-01T12:00:00.000Z/1"
    ] * 2
