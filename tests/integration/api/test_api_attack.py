"""Other callers are answered while some hold sockets open and send what is dear to check."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Generator, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import httpx
import pytest
from tests.support.api_server import FILTER, ROLES, run_api

from headgate.config.settings import Settings
from headgate.core.identity.api_keys import Keys, KeyStore
from headgate.core.ledger.ops_store import OpsStore
from headgate.web import connection_limits as connection
from headgate.web.connection_limits import BODY_SECONDS, MOST_WAITING_OF_A_PEER

HALF_A_HEAD = b"GET /livez HTTP/1.1\r\nHost: x\r\nX-A: "
NESTED = b'{"conditions":' + b"[" * 900 + b"%s" + b"]" * 900 + b"}"
SECONDS = 5.0


@dataclass(frozen=True)
class ServerProcess:
    """`headgate serve` in a process of its own, and the keys of its callers."""

    url: str
    keys: dict[str, str]

    @property
    def address(self) -> tuple[str, int]:
        url = httpx.URL(self.url)
        return url.host, url.port or 80

    def connect(self) -> socket.socket:
        return socket.create_connection(self.address, timeout=60)

    def client(self, who: str) -> httpx.Client:
        headers = {"Authorization": f"Bearer {self.keys[who]}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=60, trust_env=False)


@contextmanager
def serve_process(home: Path) -> Generator[ServerProcess]:
    settings = Settings(root=home)
    settings.home.mkdir(parents=True, exist_ok=True)
    (home / "datasets").mkdir()  # makes it the folder of a project
    with OpsStore.open(settings.ops_store_url) as store:
        roles = {**ROLES, "paul": "producer"}
        keys = {
            name: Keys(store.part(KeyStore)).create(name, [role], 1, by="test").secret
            for name, role in roles.items()
        }
    environment = {**os.environ, "HEADGATE_HOME": str(settings.home)}
    command = [
        sys.executable,
        "-m",
        "headgate.cli.main",
        "-o",
        "json",
        "serve",
        "--port",
        "0",
        "--quiet",
    ]
    process = subprocess.Popen(
        command, cwd=home, env=environment, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        yield ServerProcess(_address_in(process.stdout), keys)
    finally:
        process.terminate()
        process.communicate(timeout=60)


def _address_in(lines: Iterator[str]) -> str:
    for line in lines:
        if "http" in line:
            return line[line.index("http") :].split('"')[0].strip()
    raise AssertionError("the server did not say where it listens")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with serve_process(tmp_path_factory.mktemp("attack")) as process:
        yield process


def zeros(count: int) -> bytes:
    return b",".join([b"0"] * count)


def dear_documents() -> dict[str, tuple[str, str, bytes]]:
    """Who sends it, where to, and what: each took seconds to minutes, and all others waited."""
    validate = "/api/v1/filters:validate"
    many_ops = {**FILTER, "ops": ["c"] * 200_000}
    entities = b'{"eventHeader":{},"entities":[' + zeros(500_000) + b"]}"
    return {
        "nested, 20,000 values": ("vera", validate, NESTED % zeros(20_000)),
        "nested, 522,000 values": ("vera", validate, NESTED % zeros(522_000)),
        "200,000 ops": ("vera", validate, json.dumps(many_ops).encode()),
        "conditions that are none": ("vera", validate, b'{"conditions":[' + zeros(99_000) + b"]}"),
        "500,000 entities": ("paul", "/api/v1/events", entities),
    }


def dear_patterns() -> bytes:
    def pattern(at: int) -> str:
        return "^" + "".join(f"\\x{{{0x4E00 + at + part:04X}}}?" for part in range(190)) + "0$"

    conditions = [{"field": "id", "operator": "matches", "value": pattern(at)} for at in range(400)]
    return json.dumps({**FILTER, "conditions": conditions}).encode()


def attack(server: ServerProcess, seconds: float) -> list[int]:
    """Send every dear document again and again, all at once; the statuses of the answers."""
    bodies = [*dear_documents().values(), ("vera", "/api/v1/filters:validate", dear_patterns())]
    until = time.monotonic() + seconds

    def send(who: str, path: str, body: bytes) -> list[int]:
        statuses: list[int] = []
        headers = {"Content-Type": "application/json"}
        with server.client(who) as client:
            while time.monotonic() < until:
                statuses.append(client.post(path, content=body, headers=headers).status_code)
        return statuses

    with ThreadPoolExecutor(len(bodies)) as threads:
        sent = [threads.submit(send, *body) for body in bodies]
        return [status for each in sent for status in each.result()]


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[int(share * (len(values) - 1))]


def test_half_open_sockets_and_dear_documents_at_once_stop_nobody_else(
    server: ServerProcess,
) -> None:
    # The attackers have a process of their own: what is measured must not wait for them here.
    with (
        ExitStack() as stack,
        ProcessPoolExecutor(1, mp_context=get_context("spawn")) as processes,
    ):
        attacking = processes.submit(attack, server, SECONDS)
        for _ in range(1_000):
            half_open = stack.enter_context(closing(server.connect()))
            half_open.sendall(HALF_A_HEAD)
        live: list[float] = []
        lists: list[float] = []
        while not attacking.done():
            live.append(seconds_of(server, "/livez"))
            lists.append(seconds_of(server, "/api/v1/filters"))
            time.sleep(0.02)
        statuses = attacking.result()
    for name, seconds in {"livez": live, "listFilters": lists}.items():
        figures = [round(percentile(seconds, share) * 1000, 1) for share in (0.5, 0.95, 1)]
        print(f"{name}: {len(seconds)} requests; p50, p95, max in ms: {figures}")
    print(f"attack: {len(statuses)} requests, answered {Counter(statuses)}")
    assert set(statuses) <= {200, 400, 422, 429}
    assert min(len(statuses), len(live)) > 20
    # The goal is 100 ms; this machine may be busy with other tests.
    assert percentile(live, 0.95) < 1.0


def seconds_of(server: ServerProcess, path: str) -> float:
    """How long a request took on a new connection that was answered with 200."""
    key = server.keys["adam"]
    head = f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-API-Key: {key}\r\n\r\n"
    begun = time.monotonic()
    with closing(server.connect()) as caller:
        caller.sendall(head.encode())
        answer = b"".join(iter(lambda: caller.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 200 "), answer[:200]
    return time.monotonic() - begun


def test_a_head_that_does_not_come_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert connection.HEAD_SECONDS == 10
    monkeypatch.setattr(connection, "HEAD_SECONDS", 1.0)
    with (
        run_api(tmp_path, keys=False) as api,
        closing(ServerProcess(api.url, {}).connect()) as half,
        closing(ServerProcess(api.url, {}).connect()) as silent,
    ):
        half.sendall(HALF_A_HEAD)
        begun = time.monotonic()
        answer = b"".join(iter(lambda: half.recv(65536), b""))
        assert 0.8 < time.monotonic() - begun < 10
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 408 ")
        assert b"application/problem+json" in head
        assert json.loads(body)["code"] == "HG-2006"
        assert silent.recv(65536) == b""


@pytest.mark.slow
def test_a_body_that_drips_is_given_up(server: ServerProcess) -> None:
    key = server.keys["vera"].encode()
    with closing(server.connect()) as slow:
        slow.sendall(
            b"POST /api/v1/filters:validate HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "
            + key
            + b"\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n{"
        )
        begun = time.monotonic()
        slow.settimeout(1)
        answer = b""
        while time.monotonic() - begun < BODY_SECONDS + 20 and not answer:
            slow.sendall(b" ")
            try:
                answer = slow.recv(65536)
            except TimeoutError:
                continue
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert time.monotonic() - begun > BODY_SECONDS - 2


def test_a_length_that_is_stated_twice_is_refused(server: ServerProcess) -> None:
    with closing(server.connect()) as caller:
        caller.sendall(
            b"POST /api/v1/filters:validate HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /livez HTTP/1.1\r\nHost: x\r\n\r\n"
        )
        answer = b"".join(iter(lambda: caller.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1 ") == 1
    assert b"application/problem+json" in answer


def test_the_connection_that_waited_longest_gives_way(server: ServerProcess) -> None:
    with ExitStack() as stack:
        first = stack.enter_context(closing(server.connect()))
        first.sendall(HALF_A_HEAD)
        time.sleep(0.5)
        for _ in range(MOST_WAITING_OF_A_PEER + 20):
            stack.enter_context(closing(server.connect())).sendall(HALF_A_HEAD)
        assert b"HTTP/1.1 429 " in first.recv(65536)
        with server.client("vera") as vera:
            assert vera.get("/api/v1/filters").status_code == 200


def test_answers_on_a_kept_connection_wait_for_no_acknowledgement(server: ServerProcess) -> None:
    with server.client("vera") as vera:
        vera.get("/api/v1/filters")
        seconds = []
        for _ in range(200):
            begun = time.monotonic()
            assert vera.get("/api/v1/filters").status_code == 200
            seconds.append(time.monotonic() - begun)
    print(f"GET /filters on a kept connection: p50 {percentile(seconds, 0.5) * 1000:.1f} ms")
    # With Nagle's algorithm against delayed acknowledgements it was 40 ms at least.
    assert percentile(seconds, 0.1) < 0.035
