"""The client of Connect's REST, against a server that says what the test wants."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from headgate.core.kafka import connect_rest
from headgate.core.kafka.connect_rest import ConnectRest, shown, told
from headgate.core.runtime.ports import any_port
from headgate.errors import OperationError, UnavailableError, UsageError

TRACE = (
    "org.apache.kafka.connect.errors.ConnectException: it cannot start\n\tat a.B.c(B.java:1)\n"
    "Caused by: com.example.NoNodeException: no node answers\n\tat a.B.d(B.java:2)\n"
)


class Worker:
    """Answers in turn; the last answer of a path is repeated."""

    def __init__(self) -> None:
        self.answers: dict[str, list[tuple[int, object]]] = {}
        self.asked: list[tuple[str, str, object]] = []

    def says(self, path: str, *answers: tuple[int, object]) -> None:
        self.answers[path] = list(answers)

    def answer(self, verb: str, path: str, body: bytes) -> tuple[int, object]:
        self.asked.append((verb, path, json.loads(body) if body else None))
        left = self.answers.get(path, [(404, {"message": f"{path} not found"})])
        return left.pop(0) if len(left) > 1 else left[0]


@pytest.fixture
def worker() -> Iterator[tuple[Worker, ConnectRest]]:
    told_by = Worker()

    class Handler(BaseHTTPRequestHandler):
        def _reply(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            code, answer = told_by.answer(self.command, self.path, body)
            content = json.dumps(answer).encode() if answer is not None else b""
            self.send_response(code)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_PUT = do_POST = do_DELETE = _reply

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield told_by, ConnectRest(f"http://127.0.0.1:{server.server_address[1]}/", 60.0)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def status(connector: str = "RUNNING", *tasks: str, trace: str = "") -> dict[str, Any]:
    return {
        "name": "x",
        "type": "source",
        "connector": {"state": connector, "worker_id": "w"},
        "tasks": [
            {"id": n, "state": s, "worker_id": "w", "trace": trace} for n, s in enumerate(tasks)
        ],
    }


def test_a_group_that_shares_out_its_tasks_is_asked_again(worker, monkeypatch):
    monkeypatch.setattr(connect_rest, "PAUSE_SECONDS", 0.01)
    told_by, rest = worker
    told_by.says("/connectors/x/config", (409, {"message": "rebalance"}), (201, {}))
    rest.put("x", {"a": "1"})
    assert [body for _, _, body in told_by.asked] == [{"a": "1", "name": "x"}] * 2


def test_a_connector_without_tasks_does_not_run_yet(worker, monkeypatch):
    monkeypatch.setattr(connect_rest, "PAUSE_SECONDS", 0.01)
    told_by, rest = worker
    told_by.says(
        "/connectors/x/status",
        (404, {"message": "no status"}),
        (200, status()),
        (200, status("RUNNING", "UNASSIGNED")),
        (200, status("RUNNING", "RUNNING", "RUNNING")),
    )
    assert len(rest.wait_running("x", 60).tasks) == 2


def test_a_failed_task_is_told_with_the_first_line_and_the_cause(worker):
    told_by, rest = worker
    failed = status("RUNNING", "RUNNING", "FAILED", trace=TRACE)
    failed["tasks"][0]["trace"] = ""
    told_by.says("/connectors/x/status", (200, failed))
    with pytest.raises(OperationError) as error:
        rest.wait_running("x", 60)
    assert "it cannot start; caused by com.example.NoNodeException" in error.value.why
    assert "at a.B" not in error.value.why


def test_one_that_never_runs_is_given_up_at_the_deadline(worker, monkeypatch):
    monkeypatch.setattr(connect_rest, "PAUSE_SECONDS", 0.01)
    told_by, rest = worker
    told_by.says("/connectors/x/status", (200, status("UNASSIGNED")))
    with pytest.raises(OperationError) as error:
        rest.wait_running("x", 0.05)
    assert "not running after" in error.value.why


def test_faults_name_their_fields(worker):
    told_by, rest = worker
    configs = [
        {"value": {"name": "tasks.max", "errors": ["Invalid value many."]}},
        {"value": {"name": "port", "errors": []}},
    ]
    told_by.says("/connector-plugins/A/config/validate", (200, {"configs": configs}))
    (fault,) = rest.faults({"connector.class": "A"}, "a.json")
    assert (fault.field, fault.what) == ("tasks.max", "Invalid value many")
    absent = {"message": "Failed to find any class that implements Connector and is named B"}
    told_by.says("/connector-plugins/B/config/validate", (500, absent))
    (missing,) = rest.faults({"connector.class": "B"}, "a.json")
    assert "B is not there" in missing.what
    (unnamed,) = rest.faults({}, "a.json")
    assert unnamed.field == "connector.class"


def test_what_is_not_there_and_what_is_refused_are_told_apart(worker):
    told_by, rest = worker
    assert rest.config("none") is None
    assert rest.state("none") is None
    with pytest.raises(UsageError):
        rest.delete("none")
    told_by.says("/connectors/x", (500, {"message": "it broke"}))
    with pytest.raises(OperationError, match="500"):
        rest.delete("x")


def test_a_name_is_escaped_in_the_path(worker):
    told_by, rest = worker
    rest.state("a/b c")
    assert told_by.asked[0][1] == "/connectors/a%2Fb%20c/status"


def test_a_worker_that_is_away_may_come_back():
    with pytest.raises(UnavailableError) as error:
        ConnectRest(f"http://127.0.0.1:{any_port()}", 1.0).states()
    assert error.value.retryable


def test_passwords_are_masked_wherever_they_stand():
    config = {"a": "1", "password": "x", "dlq.sasl.jaas.config": "y", "my.Secret": "z"}
    assert shown(config) == {
        "a": "1",
        **dict.fromkeys(("password", "dlq.sasl.jaas.config", "my.Secret"), "********"),
    }


def test_a_trace_without_a_cause_is_its_first_line():
    assert told("java.lang.IllegalStateException: no\n\tat x") == (
        "java.lang.IllegalStateException: no"
    )
