"""The API as a process: real sockets, streams, waiting, and an end without half-done work."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import httpx
import pytest
from tests.support.api_server import FILTER, RunningApi, run_accepting_router, run_api

from headgate.core.identity.api_keys import KeyStore
from headgate.core.ledger.ops_store import OpsStore
from headgate.errors import (
    DeclarationError,
    DuplicateError,
    ForbiddenError,
    IllegalTransitionError,
    NotFoundError,
    StaleError,
    UnauthenticatedError,
    UnavailableError,
)
from headgate.filters.api import operations as stream
from headgate.filters.api.filters import FilterState
from headgate.filters.api.models import Happened

ID = FILTER["id"]
ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningApi]:
    with run_api(tmp_path_factory.mktemp("api")) as server, run_accepting_router(server.settings):
        yield server


def test_a_filter_goes_from_its_document_to_live_and_back(api: RunningApi) -> None:
    with api.client("ann") as ann, api.client("bob") as bob, api.client("dan") as dan:
        made = ann.create(FILTER)
        assert ann.generate(ID).valid
        assert bob.approve(ID, made.revision, "agreed").status == "approved"
        operation = dan.wait(dan.deploy(ID).operation, 120)
        assert operation.state == "succeeded"
        assert dan.get(ID).status == "deployed"
        assert dan.status(ID).cutover == {"0": 7}
        second = ann.update(ID, {**FILTER, "description": "changed"}, ann.etag(ID))
        bob.approve(ID, second.revision)
        assert dan.wait(dan.deploy(ID).operation, 120).state == "succeeded"
        assert dan.wait(dan.rollback(ID).operation, 120).state == "succeeded"
        assert dan.get(ID).deployed_revision == made.revision
        assert [one.version for one in dan.revisions(ID).revisions] == [1, 2, 3]
        assert dan.diff(ID, 1, 2).fields == ["description"]
        assert dan.wait(dan.pause(ID).operation, 120).state == "succeeded"
        assert dan.get(ID).paused
        assert [one.id for one in dan.list()] == [ID]
        assert dan.ledger(ID).sent == 0
        assert dan.dry_run(ID, 10, 1).unread


def test_the_server_waits_as_long_as_it_is_asked_to(api: RunningApi) -> None:
    other = {**FILTER, "id": "waited-for", "outputTopic": "waited-for"}
    with api.client("ann") as ann, api.client("bob") as bob:
        bob.approve("waited-for", ann.create(other).revision)
    headers = {"Authorization": f"Bearer {api.keys['dan']}", "Prefer": "wait=50"}
    url = f"{api.url}/api/v1/filters/waited-for/deploy"
    answer = httpx.post(url, headers=headers, timeout=120, trust_env=False)
    assert (answer.status_code, answer.json()["status"]) == (200, "deployed")
    assert answer.headers["Preference-Applied"] == "wait=50"
    assert answer.headers["Location"].startswith("/api/v1/operations/")


def test_the_client_raises_what_the_server_meant(api: RunningApi) -> None:
    other = {**FILTER, "id": "errors", "outputTopic": "errors"}
    with api.client("ann") as ann, api.client("bob") as bob, api.client("dan") as dan:
        ann.create(other)
        with pytest.raises(DuplicateError):
            ann.create(other)
        with pytest.raises(DeclarationError) as refused:
            ann.create({**other, "conditions": [], "consumerid": "x"})
        assert {fault.field for fault in refused.value.faults} == {"/conditions", "/consumerid"}
        with pytest.raises(StaleError):
            ann.update("errors", other, "not-this")
        with pytest.raises(IllegalTransitionError) as illegal:
            dan.deploy("errors")
        assert "approve" in illegal.value.allowed
        with pytest.raises(ForbiddenError):
            ann.approve("errors", "0" * 64)
        with pytest.raises(StaleError):
            bob.approve("errors", "0" * 64)
        with pytest.raises(NotFoundError):
            ann.get("nothing")
    with api.client(None) as nobody, pytest.raises(UnauthenticatedError):
        nobody.get("errors")


def test_a_server_that_is_not_there_is_said_to_be_away() -> None:
    from headgate.core.runtime.ports import any_port
    from headgate.filters.api.client import Client

    with (
        Client(f"http://127.0.0.1:{any_port()}") as client,
        pytest.raises(UnavailableError) as away,
    ):
        client.get("anything")
    assert "headgate serve" in away.value.fix


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set once a stream knows from where on it tells."""
    known, newest = threading.Event(), stream._newest

    def noted(here: FilterState) -> int:
        found = newest(here)
        known.set()
        return found

    monkeypatch.setattr(stream, "_newest", noted)
    return known


def told(events: Iterator[Happened], enough: Callable[[Happened], bool]) -> list[Happened]:
    """What a stream tells, up to the first that is enough."""
    found: list[Happened] = []
    for one in events:
        found.append(one)
        if enough(one):
            break
    return found


def test_a_stream_tells_what_happens_and_goes_on_where_it_broke(
    api: RunningApi, begun: threading.Event
) -> None:
    seen: list[Happened] = []
    with api.client("vera") as vera, api.client("ann") as ann:

        def follow() -> None:
            seen.extend(told(vera.events(seconds=240), lambda one: one.subject == "streamed-last"))

        following = threading.Thread(target=follow)
        following.start()
        assert begun.wait(120)
        for name in ("streamed", "streamed-last"):
            ann.create({**FILTER, "id": name, "outputTopic": name})
        following.join(240)
        assert [(one.action, one.subject, one.actor) for one in seen] == [
            ("create", "streamed", "ann"),
            ("create", "streamed-last", "ann"),
        ]
        newest = seen[-1].seq
        everything = told(vera.events(after=0, seconds=240), lambda one: one.seq >= newest)
    assert [one.seq for one in everything] == list(range(1, newest + 1))
    headers = {"Authorization": f"Bearer {api.keys['vera']}", "Last-Event-ID": str(seen[0].seq - 1)}
    url = f"{api.url}/api/v1/events/stream?for=240"
    with httpx.stream("GET", url, headers=headers, trust_env=False, timeout=120) as answer:
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        lines = list(islice((line for line in answer.iter_lines() if line), 5))
    assert lines[2] == f"id: {seen[0].seq}"
    assert lines[3] == "event: create"
    assert json.loads(lines[4].removeprefix("data: "))["subject"] == "streamed"


def test_a_stream_ends_when_the_server_stops(tmp_path: Path, begun: threading.Event) -> None:
    with run_api(tmp_path) as api:
        ended = threading.Event()

        def follow() -> None:
            headers = {"Authorization": f"Bearer {api.keys['vera']}"}
            url = f"{api.url}/api/v1/events/stream"
            with httpx.stream("GET", url, headers=headers, trust_env=False, timeout=120) as answer:
                for _ in answer.iter_lines():
                    pass
            # Cut off by the server, it would have ended with an error instead.
            ended.set()

        thread = threading.Thread(target=follow, daemon=True)
        thread.start()
        assert begun.wait(120)
        stopped = time.monotonic()
        api.stop()
        assert ended.wait(10)
        assert time.monotonic() - stopped < 10
        assert not (tmp_path / ".headgate" / "api.json").exists()


def test_a_stream_ends_when_its_key_is_revoked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "ALIVE_EVERY", 0.2)
    with run_api(tmp_path) as api, OpsStore.open(api.settings.ops_store_url) as store:
        headers = {"Authorization": f"Bearer {api.keys['vera']}"}
        url = f"{api.url}/api/v1/events/stream"
        with httpx.stream("GET", url, headers=headers, trust_env=False, timeout=120) as answer:
            lines = answer.iter_lines()
            assert next(line for line in lines if "alive" in line)
            (key,) = (one for one in store.part(KeyStore).every() if one.name == "vera")
            store.part(KeyStore).revoke(key.id, by="test")
            revoked = time.monotonic()
            alive = sum("alive" in line for line in lines)
        assert time.monotonic() - revoked < 10
        # The look that was under way may have seen the key as it was.
        assert alive <= 1


def test_serve_stops_at_a_signal_and_leaves_nothing_behind(tmp_path: Path) -> None:
    environment = {**os.environ, "HEADGATE_HOME": str(tmp_path / "home"), "API_PORT": "0"}
    command = [sys.executable, "-m", "headgate.cli.main", "-o", "json", "serve"]
    child = subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        file = tmp_path / "home" / "api.json"
        until = time.monotonic() + 180
        while not file.is_file() and time.monotonic() < until and child.poll() is None:
            time.sleep(0.1)
        url = json.loads(file.read_text())["url"]
        assert httpx.get(f"{url}/readyz", trust_env=False, timeout=120).json()["status"] == "ok"
        assert httpx.get(f"{url}/api/v1/filters", trust_env=False, timeout=120).status_code == 200
        refused = httpx.post(f"{url}/api/v1/filters", json=FILTER, trust_env=False, timeout=120)
        assert refused.status_code == 401
        child.send_signal(signal.SIGTERM)
        out, err = child.communicate(timeout=120)
    finally:
        child.kill()
        child.wait()
    assert child.returncode == 0
    assert json.loads(out)["url"] == url
    assert "stopped" in err
    assert not file.exists()
