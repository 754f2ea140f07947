"""The running API against its own document: whatever is sent, nothing undocumented comes back (N6)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
import requests
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.support.api_server import FILTER, RunningApi, run_api
from tests.support.postgres import create_ops_store, settings_of
from tests.support.services import RunningBroker

from headgate.filters.events.database import Place
from headgate.local.postgres import PostgresServer
from headgate.local.service import Running

if TYPE_CHECKING:
    from schemathesis import Case

DOCUMENT = Path(__file__).parents[3] / "schemas" / "openapi.json"
OPERATIONS = [
    (path, method)
    for path, methods in json.loads(DOCUMENT.read_text("utf-8"))["paths"].items()
    for method in methods
]
NAMED = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
)
THERE = {**FILTER, "id": "0", "outputTopic": "a"}
QUICK, SOME, FULL = 4, 25, 150


# These need PostgreSQL; the stream of what happens to filters does not.
EVENTS = [place for place in OPERATIONS if re.match(r"/api/v1/events(?!/stream)", place[0])]
REDRIVE = ("/api/v1/dead-letters:redrive", "post")
REST = [place for place in OPERATIONS if place not in EVENTS and place != REDRIVE]


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningApi]:
    with run_api(tmp_path_factory.mktemp("contract")) as made:
        yield made


@pytest.fixture(scope="module")
def with_postgres(
    tmp_path_factory: pytest.TempPathFactory, events_place: Place
) -> Iterator[RunningApi]:
    with run_api(tmp_path_factory.mktemp("events"), **settings_of(events_place)) as made:
        yield made


@pytest.fixture(scope="module")
def on_postgres(
    tmp_path_factory: pytest.TempPathFactory, postgres: Running[PostgresServer]
) -> Iterator[RunningApi]:
    """The ops store itself in PostgreSQL, which takes less for text than SQLite does."""
    home, url = tmp_path_factory.mktemp("ops"), create_ops_store(postgres.service, "ops_contract")
    with run_api(home, ops_store_url=url) as made:
        yield made


@pytest.fixture(scope="module")
def with_broker(
    tmp_path_factory: pytest.TempPathFactory, broker: RunningBroker
) -> Iterator[RunningApi]:
    home = tmp_path_factory.mktemp("redrive")
    with run_api(home, bootstrap_servers=broker.bootstrap) as made:
        yield made


@cache
def schema_at(url: str) -> Any:
    """Read once for each server: it is long."""
    import schemathesis

    schema = schemathesis.openapi.from_dict(json.loads(DOCUMENT.read_text("utf-8")))
    schema.config.update(base_url=url)
    return schema


def hold(api: RunningApi, place: tuple[str, str], examples: int) -> int:
    """Send cases that fit the document and cases that do not, and check every answer; how many."""
    from schemathesis import GenerationMode
    from schemathesis.checks import CHECKS, load_all_checks

    load_all_checks()
    answered = 0
    path, method = place
    operation = schema_at(api.url)[path][method.upper()]
    checks: list[Any] = [one for one in CHECKS.get_all() if one.__name__ in NAMED]
    assert len(checks) == len(NAMED)
    session = requests.Session()
    session.trust_env = False
    fitting, unfit = (
        operation.as_strategy(generation_mode=mode)
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
    )

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
    @given(case=st.one_of(fitting, unfit), real=st.booleans())
    def sent(case: Case, real: bool) -> None:
        nonlocal answered
        # Without a key that holds, all answers would be 401.
        case.headers["Authorization"] = f"Bearer {api.keys['adam']}"
        if path.endswith("/events/stream"):
            case.query["for"] = 0.05
        if real and path.startswith("/api/v1/filters"):
            meet(api, case)
        case.call_and_validate(session=session, checks=checks, timeout=30)
        answered += 1

    with session:
        sent()
    return answered


def meet(api: RunningApi, case: Case) -> None:
    """Let the case concern a filter that is there, from the state that it has now."""
    with api.client("adam") as adam:
        if not any(one.id == THERE["id"] for one in adam.list()):
            adam.create(THERE)
        if "id" in case.path_parameters:
            case.path_parameters["id"] = THERE["id"]
        if case.method in ("PUT", "DELETE"):
            case.headers["If-Match"] = f'"{adam.etag(THERE["id"])}"'
        if isinstance(case.body, dict) and "conditions" in case.body:
            case.body = {**THERE, "description": str(case.body.get("description", ""))[:100]}


def by_name(place: tuple[str, str]) -> str:
    return f"{place[1]} {place[0]}"


@pytest.mark.parametrize("place", REST, ids=by_name)
def test_every_answer_is_documented_and_none_is_a_fault_of_ours(
    api: RunningApi, place: tuple[str, str]
) -> None:
    assert hold(api, place, QUICK) > 0


@pytest.mark.parametrize("place", EVENTS, ids=by_name)
def test_so_is_every_answer_to_events(with_postgres: RunningApi, place: tuple[str, str]) -> None:
    assert hold(with_postgres, place, QUICK) > 0


def test_so_is_every_answer_to_a_redrive(with_broker: RunningApi) -> None:
    assert hold(with_broker, REDRIVE, QUICK) > 0


@pytest.mark.slow
@pytest.mark.parametrize("place", REST, ids=by_name)
def test_the_same_with_many_more(api: RunningApi, place: tuple[str, str]) -> None:
    assert hold(api, place, FULL) > 0


@pytest.mark.slow
@pytest.mark.parametrize("place", REST, ids=by_name)
def test_the_same_with_an_ops_store_in_postgresql(
    on_postgres: RunningApi, place: tuple[str, str]
) -> None:
    assert hold(on_postgres, place, SOME) > 0


@pytest.mark.slow
@pytest.mark.parametrize("odd", ["a\0b", "\ud800", "\udfff\0", "\U0010ffff"], ids=ascii)
def test_what_postgresql_cannot_keep_is_refused_or_kept_and_never_a_fault_of_ours(
    on_postgres: RunningApi, odd: str
) -> None:
    filters, one = f"{on_postgres.url}/api/v1/filters", {**THERE, "id": "odd", "outputTopic": "odd"}
    found = [{"field": "header_data.a", "operator": "equals", "value": odd}]
    asked: list[tuple[str, str, Any]] = [
        ("POST", filters, {**one, "name": odd}),
        ("POST", filters, {**one, "id": odd}),
        ("POST", filters, {**one, "description": odd, "conditions": found}),
        ("POST", filters, {**one, odd: odd}),
        ("POST", f"{filters}/0/reject", {"reason": odd}),
        ("POST", f"{filters}/0/approve", {"revision": odd, "comment": odd}),
        ("POST", f"{filters}/0/validate", {"sql": odd}),
        ("POST", f"{filters}:validate", {**one, "conditions": found}),
        ("GET", f"{filters}?q={quote(odd, errors='replace')}", None),
        ("GET", f"{filters}?after={quote(odd, errors='replace')}", None),
        ("GET", f"{filters}/{quote(odd, errors='replace')}", None),
    ]
    with requests.Session() as session:
        session.trust_env = False
        session.headers["Authorization"] = f"Bearer {on_postgres.keys['adam']}"
        for method, url, body in asked:
            answer = session.request(
                method, url, data=json.dumps(body), headers={"Content-Type": "application/json"}
            )
            assert answer.status_code < 500, (method, url, body, answer.text)


@pytest.mark.slow
@pytest.mark.parametrize("place", EVENTS, ids=by_name)
def test_the_same_with_many_more_events(with_postgres: RunningApi, place: tuple[str, str]) -> None:
    assert hold(with_postgres, place, FULL) > 0


@pytest.mark.slow
def test_the_same_with_many_more_redrives(with_broker: RunningApi) -> None:
    assert hold(with_broker, REDRIVE, FULL) > 0
