"""Callers are answered while the store is slow, while others ask much, and whatever is away."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio.to_thread
import httpx
import pytest
from sqlalchemy import func, select
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from tests.support.api_client import FILTER, FILTERS, ONE, ApiClient

from headgate.config.settings import Settings
from headgate.core.ledger import answers as kept
from headgate.core.ledger.answers import AnswerStore
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.ledger.tables import answers, api_keys
from headgate.errors import OperationError, TooManyError, UnavailableError
from headgate.filters.api import events
from headgate.filters.events.database import Place
from headgate.web import app_state as served
from headgate.web import middleware as manners
from headgate.web.limits import GIT, MOST, MOST_OF_A_CALLER, MOST_WRONG_KEYS, STREAMS, WrongKeys

EVENTS = "/api/v1/events"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Another process writes to the ops store, and does not end."""
    with closing(sqlite3.connect(folder / "ops.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


def test_the_liveness_probe_waits_for_no_thread(api: ApiClient) -> None:
    async def probe() -> int:
        limiter = anyio.to_thread.current_default_thread_limiter()
        limiter.total_tokens = 1
        done = threading.Event()
        waiting = asyncio.create_task(anyio.to_thread.run_sync(done.wait))
        await asyncio.sleep(0.05)
        transport = httpx.ASGITransport(api.app)
        try:
            async with httpx.AsyncClient(transport=transport, base_url="http://x") as http:
                return (await asyncio.wait_for(http.get("/livez"), 5)).status_code
        finally:
            done.set()
            await waiting

    assert asyncio.run(probe()) == 200


def test_a_locked_store_is_not_ready_and_is_still_read(api: ApiClient, tmp_path: Path) -> None:
    assert api("GET", "/readyz").status_code == 200
    api.app.state.served.store_probe._looked_at -= served.PROBE_EVERY
    with locked(tmp_path):
        begun = time.monotonic()
        assert api("GET", FILTERS, "vera").status_code == 200
        assert api("GET", "/readyz").json()["parts"]["opsStore"] == "away"
        assert time.monotonic() - begun < 15


def test_a_full_disk_is_not_ready_and_is_still_read(api: ApiClient) -> None:
    full = "BEGIN SELECT RAISE(FAIL, 'database or disk is full'); END"
    with api.store._engine.begin() as db:
        db.exec_driver_sql(f"CREATE TRIGGER no_use BEFORE UPDATE ON api_keys {full}")
        for change in ("INSERT", "UPDATE"):
            trigger = f"CREATE TRIGGER no_{change} BEFORE {change} ON leases {full}"
            db.exec_driver_sql(trigger)
    assert api("GET", FILTERS, "vera").status_code == 200
    assert api("GET", "/readyz").status_code == 503


def test_the_use_of_a_key_is_noted(api: ApiClient) -> None:
    api("GET", FILTERS, "vera")
    with api.store._engine.connect() as db:
        used = db.scalar(select(api_keys.c.last_used_at).where(api_keys.c.name == "vera"))
    assert used is not None


def test_a_pool_without_a_free_connection_is_503(
    api: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exhausted(*_: Any, **__: Any) -> None:
        raise PoolTimeoutError("QueuePool limit of size 5 overflow 10 reached")

    monkeypatch.setattr(api.service, "list", exhausted)
    answer = api("GET", FILTERS, "vera")
    assert (answer.status_code, answer.json()["code"]) == (503, "HG-8001")
    assert answer.headers["Retry-After"]
    assert "QueuePool" not in answer.text


def test_more_requests_than_can_be_carried_out_are_503_but_for_the_probe(
    api: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manners, "MOST_REQUESTS", 0)
    answer = api("GET", FILTERS, "vera")
    assert answer.status_code == 503
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.headers["Retry-After"]
    assert api("GET", "/livez").status_code == 200


def test_one_caller_cannot_hold_all_streams(api: ApiClient) -> None:
    places = api.app.state.served.places
    for _ in range(MOST_OF_A_CALLER[STREAMS]):
        places.take(STREAMS, "vera")
    refused = api("GET", f"{EVENTS}/stream?for=0.1", "vera")
    assert (refused.status_code, refused.json()["code"]) == (429, "HG-2004")
    assert api("GET", f"{EVENTS}/stream?for=0.1", "adam").status_code == 200


def test_comparisons_with_git_have_few_places(api: ApiClient) -> None:
    for _ in range(MOST[GIT]):
        api.app.state.served.places.take(GIT, "vera")
    assert api("GET", "/api/v1/drift", "adam").status_code == 429


def test_a_problem_names_no_folder_of_the_server(
    api: ApiClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        why = f"fatal: bad object in {tmp_path}/.headgate/git/filters.git"
        raise OperationError("git refused", why=why, fix=f"look into {tmp_path}")

    monkeypatch.setattr(api.service, "get", broken)
    answer = api("GET", ONE, "vera")
    assert "git refused" in answer.json()["detail"]
    assert str(tmp_path) not in answer.text


def test_wrong_keys_are_limited_and_right_ones_pass(
    api: ApiClient, caplog: pytest.LogCaptureFixture
) -> None:
    def tried() -> int:
        return api("GET", FILTERS, headers={"X-API-Key": "hg_wrong"}).status_code

    assert [tried() for _ in range(MOST_WRONG_KEYS)] == [401] * MOST_WRONG_KEYS
    with caplog.at_level(logging.WARNING):
        assert [tried() for _ in range(3)] == [429] * 3
    assert caplog.text.count("wrong keys") == 1
    assert api("GET", FILTERS, "vera").status_code == 200
    api.peer = "10.1.2.3"
    assert tried() == 401


def test_wrong_keys_are_forgotten_after_a_minute_and_kept_for_few_addresses() -> None:
    now = 0.0
    wrong = WrongKeys(lambda: now)
    for _ in range(MOST_WRONG_KEYS):
        wrong.note("a")
    with pytest.raises(TooManyError):
        wrong.note("a")
    now = 61.0
    wrong.note("a")
    for number in range(5_000):
        wrong.note(f"peer {number}")
    assert len(wrong._seen) <= 1_000


def test_the_answers_of_reads_are_not_kept(api: ApiClient) -> None:
    api("POST", FILTERS, "ann", json=FILTER)
    for path in (f"{ONE}/generate", f"{ONE}/validate", f"{FILTERS}:validate"):
        headers = {"Idempotency-Key": "k1"}
        for _ in range(2):
            answer = api(
                "POST", path, "vera", json=FILTER if ":" in path else None, headers=headers
            )
            assert answer.status_code == 200
            assert "Idempotent-Replayed" not in answer.headers
    with api.store._engine.connect() as db:
        assert db.scalar(select(func.count()).select_from(answers)) == 0


def test_kept_answers_have_a_size_limit_and_a_quota(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "MOST_CHARACTERS", 10_000)
    monkeypatch.setattr(kept, "MOST_OF_A_CALLER", 100_000)
    now = datetime(2025, 1, 15, tzinfo=UTC)
    with OpsStore.open(f"sqlite:///{tmp_path}/ops.db", lambda: now) as store:
        for number in range(50):
            now += timedelta(seconds=1)
            assert store.part(AnswerStore).claim("ann", f"k{number}", "r") is None
            store.part(AnswerStore).keep("ann", f"k{number}", 200, {}, "x" * 9_000)
        assert store.part(AnswerStore).claim("bob", "k0", "r") is None
        store.part(AnswerStore).keep("bob", "k0", 200, {}, "x" * 10_001)
        assert store.part(AnswerStore).claim("bob", "k0", "r") is None
        with store._engine.connect() as db:
            size = db.scalar(
                select(func.sum(func.length(answers.c.body))).where(answers.c.actor == "ann")
            )
        assert 9_000 <= (size or 0) <= 100_000
        newest = store.part(AnswerStore).claim("ann", "k49", "r")
        assert newest is not None
        assert newest.status == 200


def test_the_document_is_served_and_the_types_of_problems_lead_somewhere(api: ApiClient) -> None:
    assert api("GET", "/openapi.json").json() == api("GET", "/api/v1/openapi.json").json()
    problem = api("GET", ONE, "vera").json()
    described = api("GET", problem["type"]).json()
    assert (described["code"], described["status"]) == (problem["code"], 404)
    assert described["title"] == problem["title"]
    assert api("GET", "/api/v1/errors/HG-9999").status_code == 404


class _Writer:
    """Stands for a writer of events; PostgreSQL listens on port 5432 alone."""

    def __init__(self, place: Place) -> None:
        self._place = place

    def check(self) -> None:
        if self._place.port != 5432:
            raise UnavailableError("PostgreSQL does not answer")

    def close(self) -> None:
        pass


def test_postgresql_is_found_when_it_is_started_later_or_moves(
    api: ApiClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = Settings(root=tmp_path)
    monkeypatch.setattr(events, "EventWriter", _Writer)
    monkeypatch.setattr(events, "LOOK_AGAIN_SECONDS", 0.0)
    api.app.state.event_writers = events.EventWriterHolder(now, lambda: now)

    def health() -> int:
        return api("GET", f"{EVENTS}/health", "adam").status_code

    assert health() == 503
    now = Settings(root=tmp_path, postgres_host="127.0.0.1", postgres_port=5432)
    assert health() == 200
    api.app.state.event_writers.get()._place = Place("127.0.0.1", 1, "u", "d")
    assert health() == 503
    assert health() == 200
