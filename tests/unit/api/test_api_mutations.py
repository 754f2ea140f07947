"""No answer of 5xx: every valid body with one place replaced by something odd, or left out."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support.api_client import (
    FILTER,
    FILTERS,
    ONE,
    ApiClient,
    create_role_keys,
    open_api_client,
)
from tests.support.document_mutations import mutate_document

from headgate.config.settings import Settings
from headgate.dead_letters import api as dlq
from headgate.filters.api import operations as drift
from headgate.filters.events.model import Read
from headgate.filters.git.sync import Mended

ROOT = Path(__file__).parents[3]
SAMPLE = ROOT / "schemas/event/samples/service-dealer-001-event.json"
RICH = {
    **FILTER,
    "description": "All that a document can have",
    "conditionLogic": "OR",
    "ops": ["c", "u"],
    "backfill": "none",
    "source": "raw-event-headers",
    "conditions": [
        {"field": "event_type", "operator": "in", "values": ["CarServiceDone", "CarCreated"]},
        {"field": "header_data.amount", "operator": "between", "min": 1, "max": 2.5,
         "valueType": "number"},
        {"all": [
            {"field": "header_data.paid", "operator": "equals", "value": True,
             "valueType": "boolean"},
            {"any": [{"not": {"field": "id", "operator": "isNull"}}]},
        ]},
        {"field": "event_name", "operator": "matches", "value": "^Car[A-Z]{1,3}$"},
        {"field": "created_date", "operator": "greaterThan", "value": "2025-01-15T10:00:00Z",
         "valueType": "timestamp"},
    ],
    "status": "deployed",
    "version": 3,
    "createdAt": "2025-01-15T10:00:00Z",
    "updatedAt": "2025-01-15T10:00:00Z",
    "approvedBy": "bob",
    "approvedAt": "2025-01-15T10:00:00Z",
    "deployedAt": "2025-01-15T10:00:00Z",
    "deploymentError": "none",
    "flinkStatementIds": ["a", "b"],
}  # fmt: skip
REVISION = "0" * 64
CHOICE = {
    "ids": ["0" * 20],
    "job": "silver",
    "reason": "HG",
    "topic": "t",
    "since": "2025-01-15T10:00:00Z",
    "until": "2025-01-16T10:00:00Z",
    "to": "t",
    "limit": 10,
    "again": False,
}
ALL = 1
SAMPLED = 29


class TakingWriter:
    """Takes events as PostgreSQL would: what it is given must be text that UTF-8 can write."""

    def write(self, events: Sequence[Read]) -> frozenset[str]:
        for read in events:
            json.loads(read.text.encode())
            json.loads(read.header_data.encode())
        return frozenset(read.event.id for read in events)


class TakingWriters:
    def get(self) -> TakingWriter:
        return TakingWriter()


def bodies() -> dict[tuple[str, str], Any]:
    """A valid body for each operation that takes one."""
    event = json.loads(SAMPLE.read_text("utf-8"))
    return {
        ("POST", f"{FILTERS}:validate"): RICH,
        ("POST", FILTERS): RICH,
        ("PUT", ONE): RICH,
        ("POST", f"{FILTERS}:dry-run"): RICH,
        ("POST", f"{ONE}/validate"): {"sql": "SELECT 1"},
        ("POST", f"{ONE}/approve"): {"revision": REVISION, "comment": "yes"},
        ("POST", f"{ONE}/reject"): {"reason": "no"},
        ("POST", f"{ONE}/deploy"): {"target": "engine"},
        ("POST", f"{ONE}/rollback"): {"toVersion": 1},
        ("POST", "/api/v1/events"): event,
        ("POST", "/api/v1/events/bulk"): [event, event],
        ("POST", "/api/v1/dead-letters:plan"): CHOICE,
        ("POST", "/api/v1/dead-letters:redrive"): {**CHOICE, "perSecond": 10},
        ("POST", "/api/v1/drift:mend"): {"side": "git", "filters": ["a"]},
    }


@pytest.fixture
def everything(
    tmp_path: Path, empty_database: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ApiClient]:
    """The app with a broker's address; events are taken, git and the lake are not looked at."""
    shutil.copy(empty_database, tmp_path / "ops.db")
    with open_api_client(tmp_path, bootstrap_servers="127.0.0.1:1") as app:
        create_role_keys(app)
        monkeypatch.setattr(drift, "mend", lambda *_: Mended((), (), (), ()))
        app.app.state.event_writers = TakingWriters()
        assert app("POST", FILTERS, "adam", json=FILTER).status_code == 201

        @contextmanager
        def no_lake(settings: Settings) -> Iterator[None]:
            raise dlq.TooManyError("the lake is not looked into here")
            yield

        monkeypatch.setattr(dlq, "open_redriving", no_lake)
        yield app


def answers_of(api: ApiClient, every: int) -> Counter[tuple[str, str, int]]:
    """How often each operation gave each status; AssertionError with those of 5xx."""

    async def send() -> Counter[tuple[str, str, int]]:
        counts: Counter[tuple[str, str, int]] = Counter()
        failed: list[str] = []
        headers = {"Authorization": f"Bearer {api.keys['adam']}"}
        json_headers = {**headers, "Content-Type": "application/json"}
        transport = httpx.ASGITransport(api.app, client=("127.0.0.1", 4711))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
            for (method, path), body in bodies().items():
                for done, text in islice(mutate_document(body), 0, None, every):
                    given = dict(json_headers)
                    if method == "PUT":
                        given["If-Match"] = (await http.get(path, headers=headers)).headers["ETag"]
                    answer = await http.request(
                        method, path, content=text.encode("utf-8", "surrogatepass"), headers=given
                    )
                    counts[method, path, answer.status_code] += 1
                    if answer.status_code >= 500:
                        failed.append(f"{method} {path} {done}: {answer.text}")
        assert not failed, "\n".join(failed)
        return counts

    return asyncio.run(send())


def check(counts: Mapping[tuple[str, str, int], int]) -> None:
    """Every operation that takes a body was asked, and said of some bodies that they are wrong."""
    refused = {(method, path) for method, path, status in counts if status in (400, 422)}
    refused |= {(method, path) for method, path, status in counts if status == 207}
    assert refused == set(bodies())


def test_a_sample_of_odd_bodies_is_never_a_fault_of_the_server(everything: ApiClient) -> None:
    check(answers_of(everything, SAMPLED))


@pytest.mark.slow
def test_no_odd_body_is_a_fault_of_the_server(everything: ApiClient) -> None:
    counts = answers_of(everything, ALL)
    print(f"{sum(counts.values()):,} requests", counts)
    check(counts)
    assert sum(counts.values()) >= 5_000


def test_every_operation_with_a_body_is_among_them(everything: ApiClient) -> None:
    document = everything.app.openapi()["paths"]
    described = {
        (method.upper(), path.replace("{id}", str(FILTER["id"])))
        for path, methods in document.items()
        for method, operation in methods.items()
        if "requestBody" in operation
    }
    assert described == set(bodies())
