"""The producers' door on a real PostgreSQL: 201, 409, 422 with all reasons, and many at once."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest
from tests.support.api_client import ApiClient, create_role_keys, open_api_client
from tests.support.document_mutations import mutate_document
from tests.support.postgres import ROOT, query_rows, settings_of

from headgate.api.server import Address, Server, serve
from headgate.config.settings import Settings
from headgate.core.identity.api_keys import Keys, KeyStore
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.runtime.ports import any_port
from headgate.demo.filters.events import ToApi, draw, send
from headgate.errors import OperationError, UnavailableError
from headgate.filters.api import events
from headgate.filters.events.exact_json import text_of
from headgate.filters.events.model import SAMPLES

ONE, MANY, HEALTH = "/api/v1/events", "/api/v1/events/bulk", "/api/v1/events/health"
JSON = {"Content-Type": "application/json"}


@pytest.fixture
def api(tmp_path, events_place) -> Iterator[ApiClient]:
    with open_api_client(tmp_path, **settings_of(events_place)) as app:
        yield create_role_keys(app)
        events.close(app.app)


def sample(number: int) -> bytes:
    return (ROOT / SAMPLES / f"service-dealer-00{number}-event.json").read_bytes()


def test_a_sample_is_created_once_and_then_known(api, events_place):
    first = api("POST", ONE, "paul", JSON, content=sample(1))
    assert (first.status_code, first.json()) == (
        201,
        {"id": "service-dealer-001-test", "eventType": "CarServiceDone", "status": "created"},
    )
    again = api("POST", ONE, "paul", JSON, content=sample(1))
    assert again.status_code == 409
    assert again.headers["content-type"] == "application/problem+json"
    assert "service-dealer-001-test" in again.json()["detail"]
    kept = query_rows(
        events_place, "SELECT header_data::text FROM event_headers WHERE id LIKE 'service-%'"
    )
    assert len(kept) == 1
    assert '"amountPaid": 450.00' in kept[0][0]


def test_the_same_request_under_a_key_gets_the_same_answer(api):
    (event,) = draw(1, seed=17, prefix="once")
    headers = {**JSON, "Idempotency-Key": "k1"}
    first, again = (
        api("POST", ONE, "paul", headers, content=text_of(event.body)) for _ in range(2)
    )
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json() == again.json()


def test_all_reasons_come_at_once_with_their_pointers(api):
    event = json.loads(sample(1))
    event["eventHeader"] |= {"uuid": "", "eventTyp": "x"}
    event["entities"][0]["amountPaid"] = "450"
    found = api("POST", ONE, "paul", JSON, content=json.dumps(event))
    assert found.status_code == 422
    errors = {error["pointer"]: error for error in found.json()["errors"]}
    assert set(errors) == {"/eventHeader/uuid", "/eventHeader/eventTyp", "/entities/0/amountPaid"}
    assert errors["/eventHeader/eventTyp"]["fix"] == "Did you mean `eventType`?"


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"{", JSON, 400),
        (b"", JSON, 400),
        (b"\xff", JSON, 400),
        (b"[" * 50_000, JSON, 400),
        (b"NaN", JSON, 400),
        (b"null", JSON, 422),
        (b"[]", JSON, 422),
        (b"{}", {"Content-Type": "text/plain"}, 415),
        (b"{}", {}, 415),
        (b'{"a":"' + b"x" * 1_100_000 + b'"}', JSON, 413),
    ],
)
def test_what_is_no_event_is_a_problem_and_never_a_fault_of_the_server(api, body, headers, status):
    found = api("POST", ONE, "paul", headers, content=body)
    assert found.status_code == status
    assert found.json()["code"].startswith("HG-")


def test_an_odd_event_does_not_spoil_those_beside_it(api, events_place):
    good = sample(2).decode().replace("service-dealer-002-test", "beside-1")
    other = good.replace("beside-1", "beside-2")
    time = '"createdDate": "2025-01-16T10:00:00Z"'
    assert time in good
    odd = [
        good.replace(time, '"createdDate": "2025-01-15T10:00:00+23:59"'),
        good.replace(time, f"{time}, {time}"),
        good.replace('"id":', '"odd": 1e99999999999999999999, "id":'),
    ]
    far = good.replace(time, '"createdDate": "2025-01-15T10:00:00-15:59"')
    bodies = [*odd, far, other]
    found = api("POST", MANY, "paul", JSON, content=f"[{','.join(bodies)}]")
    assert found.status_code == 207
    statuses = [each["status"] for each in found.json()["results"]]
    assert statuses == [422, 422, 422, 201, 201]
    for each in odd:
        assert api("POST", ONE, "paul", JSON, content=each).status_code == 422


def test_postgresql_takes_whatever_the_checks_let_through(api):
    """Every place of an event with something odd in it, a hundred events a request."""
    texts = [text for _, text in mutate_document(json.loads(sample(1)))]
    assert len(texts) > 500
    for begin in range(0, len(texts), 100):
        body = f"[{','.join(texts[begin : begin + 100])}]"
        found = api("POST", MANY, "paul", JSON, content=body.encode("utf-8", "surrogatepass"))
        assert found.status_code in (201, 207), found.text
        assert {each["status"] for each in found.json()["results"]} <= {201, 409, 422}


def test_many_get_an_answer_each(api, events_place):
    bad = json.loads(sample(3)) | {"more": 1}
    body = [json.loads(sample(2)), bad, 17, json.loads(sample(2)), json.loads(sample(3))]
    found = api("POST", MANY, "paul", JSON, content=json.dumps(body))
    assert found.status_code == 207
    told = found.json()
    assert [result["status"] for result in told["results"]] == [201, 422, 422, 409, 201]
    assert (told["created"], told["refused"]) == (2, 3)
    assert told["results"][1]["errors"][0]["pointer"] == "/more"
    ids = query_rows(
        events_place, "SELECT id FROM event_headers WHERE id LIKE '%00_-test' ORDER BY id"
    )
    assert ("service-dealer-003-test",) in ids


def test_all_new_is_201_and_all_again_is_409_each(api):
    body = text_of([event.body for event in draw(200, seed=5, prefix="bulk")])
    first = api("POST", MANY, "paul", JSON, content=body)
    assert (first.status_code, first.json()["created"]) == (201, 200)
    again = api("POST", MANY, "paul", JSON, content=body)
    assert again.status_code == 207
    assert {result["status"] for result in again.json()["results"]} == {409}


@pytest.mark.parametrize("body", [b"{}", b"[]", b"[" + b",".join([b"1"] * 1001) + b"]"])
def test_a_bulk_is_a_list_of_one_to_a_thousand(api, body):
    assert api("POST", MANY, "paul", JSON, content=body).status_code == 422


@pytest.mark.parametrize("who", ["ann", "bob", "vera", "olga", "audrey"])
def test_only_producers_post_and_they_do_nothing_else(api, who):
    assert api("POST", ONE, who, JSON, content=sample(1)).status_code == 403
    assert api("POST", MANY, who, JSON, content=b"[]").status_code == 403
    assert api("POST", ONE, None, JSON, content=sample(1)).status_code == 401
    assert api("GET", "/api/v1/filters", "paul").status_code == 403


def test_health_says_whether_postgresql_answers(api, events_place, tmp_path):
    found = api("GET", HEALTH, "paul").json()
    assert found == {"status": "ok", "database": events_place.database}
    (tmp_path / "away").mkdir()
    with open_api_client(
        tmp_path / "away", postgres_host="127.0.0.1", postgres_port=any_port()
    ) as app:
        create_role_keys(app)
        found = app("GET", HEALTH, "paul")
        assert (found.status_code, found.headers["retry-after"]) == (503, "2")
        assert app("POST", ONE, "paul", JSON, content=sample(1)).status_code == 503
        events.close(app.app)


def test_without_a_database_the_answer_says_how_to_get_one(tmp_path):
    with open_api_client(tmp_path) as app:
        create_role_keys(app)
        found = app("POST", ONE, "paul", JSON, content=sample(1))
        assert found.status_code == 503
        assert "local up --with postgres" in found.json()["fix"]


@contextmanager
def served(settings: Settings) -> Iterator[str]:
    """`headgate serve` in a thread; its URL."""
    urls: queue.Queue[str] = queue.Queue()
    servers: list[Server] = []
    given = (settings, Address("127.0.0.1", 0), urls.put, servers.append)
    thread = threading.Thread(target=serve, args=given)
    thread.start()
    try:
        yield urls.get(timeout=180)
    finally:
        servers[0].stop()
        thread.join()


def test_the_load_maker_posts_each_event_once_over_http(tmp_path, events_place):
    settings = Settings(root=tmp_path, **settings_of(events_place))
    settings.home.mkdir()
    with OpsStore.open(settings.ops_store_url) as store:
        key = Keys(store.part(KeyStore)).create("paul", ("producer",), 1, by="test").secret
    events = list(draw(150, seed=31, prefix="http"))
    with (
        served(settings) as url,
        httpx.Client(
            base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=60
        ) as client,
    ):
        first = send(ToApi(client), events, 0, 60, lambda _: None)
        again = send(ToApi(client), events, 0, 60, lambda _: None)
        client.headers.clear()
        with pytest.raises(OperationError, match="401"):
            send(ToApi(client), events[:1], 0, 60, lambda _: None)
    assert (first.created, first.known) == (150, 0)
    assert (again.created, again.known) == (0, 150)
    with httpx.Client(base_url=url) as gone, pytest.raises(UnavailableError):
        send(ToApi(gone), events[:1], 0, 0.1, lambda _: None)
