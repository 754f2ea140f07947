"""Filters over the API: from a document to what runs, with what each answer says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.support.api_client import FILTER, FILTERS, ONE, ApiClient

from headgate.filters.control.reconciler import Reconciler
from headgate.filters.store.model import Standing
from headgate.filters.store.routing import RoutingStore
from headgate.filters.targets.deployment import open_targets


def reconciled(api: ApiClient) -> None:
    """Two steps with a router between them: ask for it, see that it is done."""
    settings = api.app.state.served.settings
    reconciler = Reconciler(api.store, None, open_targets(settings, api.store))
    reconciler.step()
    api.accept_deployments()
    reconciler.step()
    reconciler.close()


def deployed(api: ApiClient) -> dict[str, Any]:
    made = api("POST", FILTERS, "ann", json=FILTER).json()
    api("POST", f"{ONE}/approve", "bob", json={"revision": made["revision"]})
    api("POST", f"{ONE}/deploy", "dan")
    reconciled(api)
    return api("GET", ONE, "vera").json()


def test_a_new_filter_waits_for_approval(api: ApiClient) -> None:
    answer = api("POST", FILTERS, "ann", json=FILTER)
    assert answer.status_code == 201
    assert answer.headers["Location"] == ONE
    made = answer.json()
    assert {name: made[name] for name in FILTER if name != "conditions"} == {
        name: FILTER[name] for name in FILTER if name != "conditions"
    }
    assert (made["status"], made["version"], made["author"]) == ("pending_approval", 1, "ann")
    assert (made["ops"], made["backfill"], made["conditionLogic"]) == (["c"], "none", "AND")
    assert made["approvedBy"] is None
    assert made["flinkStatementIds"] == []


def test_an_id_is_made_from_the_name(api: ApiClient) -> None:
    body = {name: value for name, value in FILTER.items() if name != "id"}
    answer = api("POST", FILTERS, "ann", json=body)
    assert answer.json()["id"] == "service-events-for-dealer-001"


def test_fields_of_status_in_a_document_say_nothing(api: ApiClient) -> None:
    lied = {**FILTER, "status": "deployed", "approvedBy": "bob", "version": 7}
    made = api("POST", FILTERS, "ann", json=lied).json()
    assert (made["status"], made["approvedBy"], made["version"]) == ("pending_approval", None, 1)


def test_a_second_one_of_the_same_id_is_a_conflict(api: ApiClient) -> None:
    api("POST", FILTERS, "ann", json=FILTER)
    assert api("POST", FILTERS, "ann", json=FILTER).status_code == 409


def test_the_generated_sql_has_two_statements(api: ApiClient) -> None:
    api("POST", FILTERS, "ann", json=FILTER)
    made = api("POST", f"{ONE}/generate", "vera").json()
    parts = {"filterId", "revision", "sql", "statements", "valid", "validationErrors", "target"}
    assert set(made) == parts
    assert len(made["statements"]) == 2
    assert made["valid"] is True
    valid = api("POST", f"{ONE}/validate", "vera", json={"sql": made["sql"]}).json()
    assert valid == {"valid": True, "errors": [], "warnings": []}
    other = api("POST", f"{ONE}/validate", "vera", json={"sql": "DROP TABLE x"}).json()
    assert other["valid"] is False


def test_a_document_can_be_judged_before_it_is_submitted(api: ApiClient) -> None:
    good = api("POST", f"{FILTERS}:validate", "vera", json=FILTER)
    assert (good.status_code, good.json()["valid"]) == (200, True)
    bad = api("POST", f"{FILTERS}:validate", "vera", json={**FILTER, "conditions": []})
    assert (bad.status_code, bad.json()["valid"]) == (200, False)
    assert bad.json()["errors"][0]["pointer"] == "/conditions"
    assert api("GET", FILTERS, "vera").json()["total"] == 0


def test_nobody_approves_what_they_wrote_not_even_an_admin(api: ApiClient) -> None:
    revision = api("POST", FILTERS, "adam", json=FILTER).json()["revision"]
    answer = api("POST", f"{ONE}/approve", "adam", json={"revision": revision})
    assert answer.status_code == 403
    assert "nobody approves what they wrote" in answer.json()["detail"]


def test_another_key_of_the_same_person_does_not_help(api: ApiClient) -> None:
    revision = api("POST", FILTERS, "ann", json=FILTER).json()["revision"]
    api.create_key("ann", "approver")
    answer = api("POST", f"{ONE}/approve", "ann", json={"revision": revision})
    assert answer.status_code == 403


def test_who_approves_comes_from_the_key_and_not_from_the_body(api: ApiClient) -> None:
    revision = api("POST", FILTERS, "ann", json=FILTER).json()["revision"]
    body = {"revision": revision, "approvedBy": "somebody"}
    assert api("POST", f"{ONE}/approve", "bob", json=body).status_code == 422
    made = api("POST", f"{ONE}/approve", "bob", json={"revision": revision}).json()
    assert (made["status"], made["approvedBy"]) == ("approved", "bob")


def test_another_revision_than_the_one_looked_at_is_not_approved(api: ApiClient) -> None:
    api("POST", FILTERS, "ann", json=FILTER)
    assert api("POST", f"{ONE}/approve", "bob", json={"revision": "0" * 64}).status_code == 412


def test_a_deployment_is_an_operation_that_can_be_followed(api: ApiClient) -> None:
    revision = api("POST", FILTERS, "ann", json=FILTER).json()["revision"]
    api("POST", f"{ONE}/approve", "bob", json={"revision": revision})
    answer = api("POST", f"{ONE}/deploy", "dan")
    assert answer.status_code == 202
    assert {"filterId", "status", "flinkStatementIds", "message", "error"} <= set(answer.json())
    assert answer.json()["status"] == "deploying"
    place = answer.headers["Location"]
    under_way = api("GET", place, "vera")
    assert (under_way.json()["state"], under_way.headers["Retry-After"]) == ("running", "1")
    reconciled(api)
    assert api("GET", place, "vera").json()["state"] == "succeeded"
    status = api("GET", f"{ONE}/status", "vera").json()
    assert (status["status"], status["cutover"]) == ("deployed", {"0": 7})
    assert status["flinkStatementIds"]
    assert status["lastChecked"] > status["deployedAt"]
    assert status["observed"]["revision"] == status["desired"]["revision"] == revision
    assert api("GET", "/api/v1/operations", "vera").json()["operations"][0]["by"] == "dan"


def test_a_rollback_brings_back_what_was_live(api: ApiClient) -> None:
    first = deployed(api)
    etag = api("GET", ONE, "ann").headers["ETag"]
    changed = {**FILTER, "description": "another one"}
    second = api("PUT", ONE, "ann", json=changed, headers={"If-Match": etag}).json()
    assert (second["status"], second["deployedVersion"]) == ("pending_approval", 1)
    api("POST", f"{ONE}/approve", "bob", json={"revision": second["revision"]})
    api("POST", f"{ONE}/deploy", "dan")
    reconciled(api)
    answer = api("POST", f"{ONE}/rollback", "olga", json={})
    assert answer.status_code == 202
    reconciled(api)
    now = api("GET", ONE, "vera").json()
    assert (now["status"], now["deployedRevision"]) == ("deployed", first["revision"])
    versions = api("GET", f"{ONE}/revisions", "vera").json()["revisions"]
    assert sorted(one["version"] for one in versions) == [1, 2, 3]
    diff = api("GET", f"{ONE}/diff?before=1&after=2", "vera").json()
    assert diff["fields"] == ["description"]


def test_a_pause_is_at_once_and_a_resume_needs_a_new_approval(api: ApiClient) -> None:
    live = deployed(api)
    assert api("POST", f"{ONE}/pause", "olga").status_code == 202
    reconciled(api)
    assert api("GET", ONE, "vera").json()["paused"] is True
    assert api("POST", f"{ONE}/resume", "olga").status_code == 409
    api("POST", f"{ONE}/approve", "bob", json={"revision": live["revision"]})
    assert api("POST", f"{ONE}/resume", "olga").status_code == 202
    reconciled(api)
    assert api("GET", ONE, "vera").json()["paused"] is False


def test_a_filter_that_runs_is_deleted_by_two(api: ApiClient) -> None:
    live = deployed(api)
    etag = api("GET", ONE, "ann").headers["ETag"]
    answer = api("DELETE", ONE, "ann", headers={"If-Match": etag})
    assert (answer.status_code, answer.json()["status"]) == (202, "pending_deletion")
    api("POST", f"{ONE}/approve", "bob", json={"revision": live["revision"]})
    settings = api.app.state.served.settings
    reconciler = Reconciler(api.store, None, open_targets(settings, api.store))
    reconciler.step()
    assert not api.store.part(RoutingStore).wanted()
    assert api("GET", ONE, "vera").json()["status"] == "pending_deletion"
    (seen,) = api.store.part(RoutingStore).seen()
    api.store.part(RoutingStore).see([replace(seen, standing=Standing.OFF)])
    reconciler.step()
    reconciler.close()
    assert api("GET", f"{FILTERS}?status=deleted", "vera").json()["total"] == 1
    assert api("GET", FILTERS, "vera").json()["total"] == 0
    assert api("POST", f"{ONE}/deploy", "dan").status_code in (404, 409)


def test_one_that_never_ran_is_gone_at_once(api: ApiClient) -> None:
    etag = api("POST", FILTERS, "ann", json=FILTER).headers["ETag"]
    assert api("DELETE", ONE, "ann", headers={"If-Match": etag}).status_code == 204
    assert api("GET", FILTERS, "vera").json()["total"] == 0


def test_the_fields_that_conditions_ask_about_are_told(api: ApiClient) -> None:
    found = api("GET", "/api/v1/schema/fields", "vera").json()
    assert [one["name"] for one in found["fields"] if one["nested"]] == ["header_data"]
    assert len(found["fields"]) == 9
    assert found["valueTypes"] == ["string", "number", "boolean", "timestamp"]


def test_the_audit_log_is_for_auditors_and_has_everything(api: ApiClient) -> None:
    deployed(api)
    assert api("GET", "/api/v1/audit", "vera").status_code == 403
    first = api("GET", "/api/v1/audit?limit=2", "audrey").json()
    assert first["next"] == 2
    rest = api("GET", "/api/v1/audit?after=8", "audrey").json()["entries"]
    assert [one["action"] for one in rest][:3] == ["create", "approve", "deploy"]
    assert api("GET", "/api/v1/drift", "audrey").json() == {"drift": []}
    assert api("GET", f"{ONE}/ledger", "audrey").json()["ranges"] == []
