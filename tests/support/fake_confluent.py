"""A FAKE of Confluent Cloud's Flink statements API, on a loopback port.

It is written from the API's public description: paths, basic authentication, names, phases,
asynchronous deletion. It runs no SQL. It says nothing about what Confluent really does.
"""

from __future__ import annotations

import base64
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
KEY, SECRET = "fake-key", "fake-secret-canary"
ORGANIZATION, ENVIRONMENT = "11111111-2222-3333-4444-555555555555", "env-fake1"
BASE = f"/sql/v1/organizations/{ORGANIZATION}/environments/{ENVIRONMENT}/statements"


def _nothing_fails(_sql: str) -> str:
    return ""


@dataclass
class FakeStatement:
    """A statement, and how many requests for it are left before its phase changes."""

    body: dict[str, Any]
    phase: str = "PENDING"
    detail: str = ""
    looks: int = 1


@dataclass
class FakeConfluent:
    """The statements that the fake holds, and how it misbehaves."""

    statements: dict[str, FakeStatement] = field(default_factory=dict)
    tables: set[str] = field(default_factory=set)
    calls: list[tuple[str, str]] = field(default_factory=list)
    # The next answers, before anything is looked at: a status, or "lost" for taken but not answered.
    faults: list[int | str] = field(default_factory=list)
    fails: Callable[[str], str] = _nothing_fails
    slow_phases: int = 1
    port: int = 0

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def phases(self) -> dict[str, str]:
        return {name: kept.phase for name, kept in self.statements.items()}

    def handle(self, method: str, path: str, body: Any, auth: str) -> tuple[int, Any]:
        self.calls.append((method, path))
        expected = "Basic " + base64.b64encode(f"{KEY}:{SECRET}".encode()).decode()
        if auth != expected:
            return 401, error_body("invalid API key")
        if path == BASE and method == "POST":
            return self.create(body)
        name = path.removeprefix(f"{BASE}/")
        if not path.startswith(f"{BASE}/") or "/" in name:
            return 404, error_body(f"no such path: {path}")
        kept = self.statements.get(name)
        if kept is None:
            return 404, error_body(f"no statement {name}")
        return self.known(method, name, kept, body)

    def create(self, body: dict[str, Any]) -> tuple[int, Any]:
        name, spec = body["name"], body["spec"]
        if NAME.fullmatch(name) is None or len(name) > 100:
            return 400, error_body(f"invalid statement name {name}")
        if body["organization_id"] != ORGANIZATION or body["environment_id"] != ENVIRONMENT:
            return 400, error_body("the body names another place than the path")
        if not spec["compute_pool_id"] or not spec["properties"]["sql.current-database"]:
            return 400, error_body("compute pool and database are needed")
        if name in self.statements:
            return 409, error_body(f"the statement {name} exists")
        self.statements[name] = FakeStatement({**body, "spec": dict(spec)}, looks=self.slow_phases)
        return 201, self.shown(self.statements[name])

    def known(self, method: str, name: str, kept: FakeStatement, body: Any) -> tuple[int, Any]:
        if method == "DELETE":
            kept.phase, kept.looks = "DELETING", self.slow_phases
            return 202, {}
        if method == "PATCH":
            assert body[0]["path"] == "/spec/stopped"
            kept.body["spec"]["stopped"] = body[0]["value"]
            kept.phase, kept.looks = ("STOPPED", 0) if body[0]["value"] else ("PENDING", 1)
            return 200, self.shown(kept)
        self.move(name, kept)
        if name not in self.statements:
            return 404, error_body(f"no statement {name}")
        return 200, self.shown(kept)

    def move(self, name: str, kept: FakeStatement) -> None:
        """A statement goes on a step for every few looks at it."""
        kept.looks -= 1
        if kept.looks > 0:
            return
        if kept.phase == "DELETING":
            del self.statements[name]
        elif kept.phase == "PENDING":
            kept.phase, kept.detail = self.started(kept.body["spec"]["statement"])

    def started(self, sql: str) -> tuple[str, str]:
        if why := self.fails(sql):
            return "FAILED", why
        table = re.search(r"CREATE TABLE `([^`]+)`", sql)
        if table is None:
            return "RUNNING", ""
        if table[1] in self.tables:
            return "FAILED", f"Table `{table[1]}` already exists"
        self.tables.add(table[1])
        return "COMPLETED", ""

    def shown(self, kept: FakeStatement) -> dict[str, Any]:
        return {
            "api_version": "sql/v1",
            "kind": "Statement",
            **kept.body,
            "status": {"phase": kept.phase, "detail": kept.detail},
        }


def error_body(detail: str) -> dict[str, Any]:
    return {"errors": [{"detail": detail}]}


@contextmanager
def fake_confluent() -> Iterator[FakeConfluent]:
    """The fake, listening until the block ends."""
    fake = FakeConfluent()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _any(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            fault = fake.faults.pop(0) if fake.faults else None
            if isinstance(fault, int):
                fake.calls.append((self.command, f"fault {fault}"))
                return self._answer(fault, error_body("told to fail"))
            auth = self.headers.get("Authorization", "")
            status, told = fake.handle(self.command, self.path, body, auth)
            if fault == "lost":
                self.close_connection = True
                return None
            return self._answer(status, told)

        do_GET = do_POST = do_DELETE = do_PATCH = _any

        def _answer(self, status: int, told: Any) -> None:
            data = json.dumps(told).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    fake.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
