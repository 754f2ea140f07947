"""What holds for every answer: problems with pointers, ids, safe headers, limits."""

from __future__ import annotations

import json
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError
from tests.support.api_client import FILTER, FILTERS, ONE, ApiClient

from headgate.core.identity.api_keys import KeyStore
from headgate.filters.store.control import ControlStore
from headgate.web.limits import DRY_RUNS
from headgate.web.middleware import MOST_BYTES


def test_all_faults_come_at_once_each_with_its_pointer(api: ApiClient) -> None:
    body = {
        **FILTER,
        "outputTopic": "NOT ALLOWED",
        "consumerid": "x",
        "conditions": [
            {"field": "event_type", "operator": "equals", "value": "x"},
            {"all": [{"field": "event_typ", "operator": "equals", "value": "x"}]},
            {"field": "header_data.a", "operator": "between", "min": "1"},
        ],
    }
    answer = api("POST", FILTERS, "ann", json=body)
    problem = answer.json()
    assert answer.status_code == 422
    assert answer.headers["Content-Type"] == "application/problem+json"
    found = {fault["pointer"]: fault["fix"] for fault in problem["errors"]}
    assert {"/outputTopic", "/consumerid", "/conditions/1/all/0/field", "/conditions/2/max"} <= set(
        found
    )
    assert found["/consumerid"] == "Did you mean `consumerId`?"
    assert (problem["status"], problem["code"]) == (422, "HG-3001")
    assert problem["type"] == "/api/v1/errors/HG-3001"
    assert problem["requestId"] == answer.headers["X-Request-Id"]


def test_unknown_fields_and_parameters_are_refused_with_a_suggestion(api: ApiClient) -> None:
    api("POST", FILTERS, "ann", json=FILTER)
    body = api("POST", f"{ONE}/approve", "bob", json={"revison": "a" * 64})
    assert {fault["pointer"] for fault in body.json()["errors"]} == {"/revision", "/revison"}
    assert [fault["fix"] for fault in body.json()["errors"] if fault["pointer"] == "/revison"] == [
        "Did you mean `revision`?"
    ]
    query = api("GET", f"{FILTERS}?statsu=approved", "vera")
    assert query.status_code == 422
    assert query.json()["errors"] == [
        {
            "detail": "is no parameter of this",
            "parameter": "statsu",
            "fix": "Did you mean `status`?",
        }
    ]


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"{", "application/json", 400),
        (b"\xff\xfe", "application/json", 400),
        (b"[" * 100_000, "application/json", 400),
        (b"", "application/json", 400),
        (b"[]", "application/json", 422),
        (b'"filter"', "application/json", 422),
        (b'{"id": 1e999}', "application/json", 422),
        (b'{"name": "\\ud800"}', "application/json", 422),
        (b'{"id": "a", "id": "b"}', "application/json", 422),
        (b"id=1", "application/x-www-form-urlencoded", 415),
        (b"{}", "", 415),
    ],
)
def test_a_body_that_is_no_document_is_refused_and_never_breaks_the_server(
    api: ApiClient, body: bytes, kind: str, status: int
) -> None:
    answer = api("POST", FILTERS, "ann", content=body, headers={"Content-Type": kind})
    assert answer.status_code == status, answer.text
    assert answer.json()["status"] == status


@pytest.mark.parametrize("odd", ["\ud800", "a\udfff/b", "a\0b"], ids=ascii)
@pytest.mark.parametrize(
    ("path", "body"),
    [
        (FILTERS, FILTER),
        (f"{FILTERS}:validate", FILTER),
        (f"{ONE}/approve", {"revision": "x"}),
        (f"{ONE}/reject", {"reason": "x"}),
        (f"{ONE}/deploy", {}),
    ],
)
def test_half_a_character_in_a_name_is_refused_and_never_breaks_the_server(
    api: ApiClient, path: str, body: dict[str, Any], odd: str
) -> None:
    text = json.dumps({**body, odd: {odd: [odd]}})
    answer = api("POST", path, "adam", content=text, headers={"Content-Type": "application/json"})
    assert answer.status_code in (200, 422)
    assert answer.json()


def test_a_body_over_the_limit_is_refused(api: ApiClient) -> None:
    body = json.dumps({**FILTER, "description": "x" * MOST_BYTES})
    kind = {"Content-Type": "application/json"}
    answer = api("POST", FILTERS, "ann", content=body, headers=kind)
    assert answer.status_code == 413
    assert answer.json()["code"] == "HG-2003"
    api("POST", FILTERS, "ann", json=FILTER)
    reading = api("POST", f"{ONE}/reject", "bob", content=body, headers=kind)
    assert (reading.status_code, reading.json()["code"]) == (413, "HG-2003")


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/nothing", 404),
        (f"{FILTERS}/nothing", 404),
        (f"{FILTERS}/NOT-A-NAME", 422),
        (f"{FILTERS}/..%2f..%2fetc%2fpasswd", 404),
        (f"{FILTERS}?limit=0", 422),
        (f"{FILTERS}?limit=201", 422),
        (f"{FILTERS}?status=live", 422),
        (f"{FILTERS}?q=%00", 422),
        ("/api/v1/operations/zzz", 422),
        ("/api/v1/operations/abc", 404),
        (f"{ONE}/diff?before=1", 422),
    ],
)
def test_what_is_asked_wrongly_is_a_problem(api: ApiClient, path: str, status: int) -> None:
    answer = api("GET", path, "vera")
    assert answer.status_code == status, answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.json()["code"].startswith("HG-")


def test_another_method_is_405_with_those_that_are_allowed(api: ApiClient) -> None:
    answer = api("PATCH", FILTERS, "ann")
    assert answer.status_code == 405
    assert set(answer.headers["Allow"].replace(" ", "").split(",")) == {"GET", "POST"}


@pytest.mark.parametrize("path", ["/livez", "/nothing", FILTERS, f"{FILTERS}?x=1"])
def test_every_answer_has_safe_headers_and_an_id(api: ApiClient, path: str) -> None:
    answer = api("GET", path, headers={"X-Request-Id": "from-me"})
    assert answer.headers["X-Request-Id"] == "from-me"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["X-Frame-Options"] == "DENY"
    assert answer.headers["Cache-Control"] == "no-store"
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]


@pytest.mark.parametrize("odd", ["", "x" * 65, "a b", "a\tb"])
def test_an_id_that_could_forge_a_line_of_log_is_replaced(api: ApiClient, odd: str) -> None:
    assert len(api("GET", "/livez", headers={"X-Request-Id": odd}).headers["X-Request-Id"]) == 32


def test_a_path_cannot_forge_a_line_of_log(
    api: ApiClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="headgate.api.access")
    api("GET", "/nothing%0A2026-01-01 a forged line", "vera")
    logged = [
        record.getMessage() for record in caplog.records if record.name.startswith("headgate")
    ]
    assert len(logged) == 1
    assert "\n" not in logged[0]


def test_a_refused_try_leaves_who_and_from_where(
    api: ApiClient, caplog: pytest.LogCaptureFixture
) -> None:
    """A key that does not hold is named by its id, which is no secret; a role too few by its name."""
    caplog.set_level("INFO", logger="headgate.api.access")
    id = api.store.part(KeyStore).every()[0].id
    wrong = f"hg_{id}_{'x' * 43}"
    before = api.store.part(ControlStore).audit_head()
    for headers in ({"X-API-Key": wrong}, {"X-API-Key": "s3cret"}, {}):
        assert api("GET", FILTERS, headers=headers).status_code == 401
    assert api("POST", FILTERS, "vera", json=FILTER).status_code == 403
    ends = [one.getMessage().split(" ms ")[1] for one in caplog.records if "ms" in one.getMessage()]
    assert ends == [f"127.0.0.1 key:{id}?", "127.0.0.1 unknown?", "127.0.0.1 -", "127.0.0.1 vera"]
    assert "x" * 43 not in caplog.text
    assert "s3cret" not in caplog.text
    # Nobody without a key writes into the audit log, however often they try.
    assert api.store.part(ControlStore).audit_head() == before


def test_a_try_to_approve_ones_own_work_is_audited_once(api: ApiClient) -> None:
    api.create_key("ann2", "author", "approver")
    revision = api("POST", FILTERS, "ann2", json=FILTER).json()["revision"]
    for _ in range(3):
        answer = api("POST", f"{ONE}/approve", "ann2", json={"revision": revision})
        assert answer.status_code == 403
    refused = [
        one for one in api.store.part(ControlStore).audit() if one.action == "approve_refused"
    ]
    assert [(one.actor, one.subject, one.detail["peer"]) for one in refused] == [
        ("ann2", FILTER["id"], "127.0.0.1")
    ]


def test_a_step_that_fails_is_seen_by_probes_and_metrics(api: ApiClient) -> None:
    troubles = api.app.state.served.troubles
    troubles["reconciler"] = lambda: "accepted filters wait for git: git is not installed | why"
    ready = api("GET", "/readyz").json()["parts"]["reconciler"]
    assert ready == "troubled: accepted filters wait for git: git is not installed"
    shown = api("GET", "/metrics", "vera").text
    assert 'headgate_background_failing{part="reconciler"} 1' in shown
    assert "headgate_git_commits_waiting 0" in shown


def test_an_ops_store_that_is_away_is_503_and_says_nothing_of_itself(
    api: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: Any) -> None:
        raise OperationalError("SELECT canary FROM secrets", {}, Exception("canary-host refused"))

    monkeypatch.setattr(api.service, "get", away)
    answer = api("GET", ONE, "vera")
    assert (answer.status_code, answer.json()["code"]) == (503, "HG-8001")
    assert answer.headers["Retry-After"]
    assert "canary" not in answer.text
    monkeypatch.setattr(api.store, "probe_write", away)
    ready = api("GET", "/readyz")
    assert (ready.status_code, ready.json()) == (
        503,
        {"status": "unready", "parts": {"opsStore": "away"}},
    )


def test_times_are_utc_with_a_z(api: ApiClient) -> None:
    made = api("POST", FILTERS, "ann", json=FILTER).json()
    assert made["createdAt"].endswith("Z")
    assert "T" in made["updatedAt"]


def test_a_fault_of_ours_shows_no_trace(
    api: ApiClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("canary-of-the-inside")

    monkeypatch.setattr(api.service, "get", broken)
    answer = api("GET", ONE, "vera")
    assert answer.status_code == 500
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert "canary" not in answer.text
    assert "Traceback" not in answer.text
    assert answer.json()["requestId"] in caplog.text
    assert "canary-of-the-inside" in caplog.text
    assert "nosniff" in answer.headers["X-Content-Type-Options"]


def test_an_illegal_transition_lists_what_is_allowed(api: ApiClient) -> None:
    api("POST", FILTERS, "ann", json=FILTER)
    answer = api("POST", f"{ONE}/deploy", "dan")
    assert answer.status_code == 409
    assert "approve" in answer.json()["allowed"]
    assert "deploy" not in answer.json()["allowed"]


def test_the_counts_name_operations_and_never_paths_or_people(api: ApiClient) -> None:
    api("POST", FILTERS, "ann", json=FILTER)
    api("GET", f"{FILTERS}/canary-in-a-path", "vera")
    api("GET", "/canary/nowhere", "vera")
    text = api("GET", "/metrics", "vera").text
    assert 'headgate_api_requests_total{operation="createFilter",status="201"} 1' in text
    assert 'headgate_api_requests_total{operation="getFilter",status="404"} 1' in text
    assert 'headgate_api_requests_total{operation="none",status="404"} 1' in text
    assert 'headgate_filters{status="pending_approval"} 1' in text
    assert "canary" not in text
    assert "ann" not in text.replace("pending", "")


def test_dear_operations_have_few_places_and_give_them_back(api: ApiClient) -> None:
    places = api.app.state.served.places
    path = f"{FILTERS}:dry-run"
    for _ in range(3):
        assert api("POST", path, "vera", json=FILTER).status_code == 200
    for _ in range(3):
        assert api("POST", path, "vera", json={}).status_code == 422
    places.take(DRY_RUNS, "vera")
    places.take(DRY_RUNS, "vera")
    answer = api("POST", path, "vera", json=FILTER)
    assert (answer.status_code, answer.json()["code"]) == (429, "HG-2004")
    assert answer.headers["Retry-After"]
    assert api("GET", FILTERS, "vera").status_code == 200
    assert api("POST", path, json=FILTER).status_code == 401
    places.give_back(DRY_RUNS, "vera")
    assert api("POST", path, "vera", json=FILTER).status_code == 200
