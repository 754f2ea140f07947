"""Changes that do not overwrite each other, and are not made twice."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.support.api_client import FILTER, FILTERS, ONE, ApiClient

from headgate.core.identity.api_keys import KeyStore
from headgate.core.ledger.answers import KEPT_FOR, UNDER_WAY_FOR, AnswerStore
from headgate.core.ledger.ops_store import OpsStore
from headgate.filters.control.reconciler import Reconciler
from headgate.filters.store.control import ControlStore


@pytest.fixture
def etag(api: ApiClient) -> str:
    return api("POST", FILTERS, "ann", json=FILTER).headers["ETag"]


def test_a_change_without_if_match_is_refused(api: ApiClient, etag: str) -> None:
    assert api("PUT", ONE, "ann", json=FILTER).status_code == 428
    assert api("DELETE", ONE, "ann").status_code == 428
    assert api("PUT", ONE, "ann", json=FILTER, headers={"If-Match": "*"}).status_code == 428


@pytest.mark.parametrize("given", ['"other"', "W/{etag}", "nonsense", '"a", "b"', '""'])
def test_a_change_from_another_state_is_refused(api: ApiClient, etag: str, given: str) -> None:
    headers = {"If-Match": given.format(etag=etag)}
    assert api("PUT", ONE, "ann", json=FILTER, headers=headers).status_code == 412
    assert api("DELETE", ONE, "ann", headers=headers).status_code == 412


def test_of_two_changes_from_one_state_the_second_is_refused(api: ApiClient, etag: str) -> None:
    one, two = ({**FILTER, "description": words} for words in ("one", "two"))
    first = api("PUT", ONE, "ann", json=one, headers={"If-Match": etag})
    assert first.status_code == 200
    second = api("PUT", ONE, "adam", json=two, headers={"If-Match": etag})
    assert (second.status_code, second.json()["code"]) == (412, "HG-6005")
    again = api("PUT", ONE, "adam", json=two, headers={"If-Match": first.headers["ETag"]})
    assert (again.status_code, again.json()["version"]) == (200, 3)


def test_every_change_has_another_etag_and_reading_keeps_it(api: ApiClient, etag: str) -> None:
    seen = [etag]
    for words in ("one", "two", "three"):
        body = {**FILTER, "description": words}
        seen.append(
            api("PUT", ONE, "ann", json=body, headers={"If-Match": seen[-1]}).headers["ETag"]
        )
    assert len(set(seen)) == 4
    assert (
        api("GET", ONE, "vera").headers["ETag"]
        == api("GET", ONE, "bob").headers["ETag"]
        == seen[-1]
    )
    assert all(tag.startswith('"') for tag in seen)


def test_who_has_it_already_is_not_sent_it_again(api: ApiClient, etag: str) -> None:
    answer = api("GET", ONE, "vera", headers={"If-None-Match": etag})
    assert (answer.status_code, answer.content, answer.headers["ETag"]) == (304, b"", etag)
    assert api("GET", ONE, "vera", headers={"If-None-Match": '"other"'}).status_code == 200


def test_the_path_and_the_document_must_name_the_same_filter(api: ApiClient, etag: str) -> None:
    body = {**FILTER, "id": "another"}
    answer = api("PUT", ONE, "ann", json=body, headers={"If-Match": etag})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/id")


# Idempotency


def test_the_same_request_again_gets_the_same_answer(api: ApiClient) -> None:
    headers = {"Idempotency-Key": "k1"}
    first = api("POST", FILTERS, "ann", json=FILTER, headers=headers)
    second = api("POST", FILTERS, "ann", json=FILTER, headers=headers)
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.content == second.content
    for name in ("ETag", "Location", "Content-Type"):
        assert first.headers[name] == second.headers[name]
    assert second.headers["Idempotent-Replayed"] == "true"
    assert "Idempotent-Replayed" not in first.headers
    assert len([e for e in api.store.part(ControlStore).audit() if e.action == "create"]) == 1


def test_another_body_under_the_same_key_is_a_conflict(api: ApiClient) -> None:
    headers = {"Idempotency-Key": "k1"}
    api("POST", FILTERS, "adam", json=FILTER, headers=headers)
    other = api("POST", FILTERS, "adam", json={**FILTER, "id": "x"}, headers=headers)
    assert (other.status_code, other.json()["code"]) == (409, "HG-6007")
    elsewhere = api("POST", f"{ONE}/reject", "adam", json={"reason": "no"}, headers=headers)
    assert elsewhere.status_code == 409


def test_a_key_of_somebody_else_is_another_key(api: ApiClient) -> None:
    headers = {"Idempotency-Key": "k1"}
    api("POST", FILTERS, "ann", json=FILTER, headers=headers)
    assert api("POST", FILTERS, "adam", json=FILTER, headers=headers).status_code == 409
    assert api("POST", f"{ONE}/generate", "vera", headers=headers).status_code == 200


def test_what_failed_may_be_tried_again_under_the_same_key(api: ApiClient) -> None:
    headers = {"Idempotency-Key": "k1"}
    bad = api("POST", FILTERS, "ann", json={**FILTER, "conditions": []}, headers=headers)
    assert bad.status_code == 422
    assert api("POST", FILTERS, "ann", json=FILTER, headers=headers).status_code == 201


def test_a_revoked_key_gets_no_kept_answer(api: ApiClient) -> None:
    headers = {"Idempotency-Key": "k1"}
    assert api("POST", FILTERS, "ann", json=FILTER, headers=headers).status_code == 201
    (key,) = (one for one in api.store.part(KeyStore).every() if one.name == "ann")
    api.store.part(KeyStore).revoke(key.id, by="test")
    assert api("POST", FILTERS, "ann", json=FILTER, headers=headers).status_code == 401


@pytest.mark.parametrize("odd", ["", " ", "a b", "x" * 201])
def test_a_key_that_is_none_is_refused(api: ApiClient, odd: str) -> None:
    answer = api("POST", FILTERS, "ann", json=FILTER, headers={"Idempotency-Key": odd})
    assert (answer.status_code, answer.json()["errors"][0]["parameter"]) == (422, "Idempotency-Key")


def test_a_deployment_that_is_asked_for_twice_is_one(api: ApiClient, etag: str) -> None:
    revision = api("GET", ONE, "bob").json()["revision"]
    api("POST", f"{ONE}/approve", "bob", json={"revision": revision})
    headers = {"Idempotency-Key": "k2"}
    answers = [api("POST", f"{ONE}/deploy", "dan", headers=headers) for _ in range(3)]
    assert {answer.status_code for answer in answers} == {202}
    assert len({answer.headers["Location"] for answer in answers}) == 1
    assert len(api.store.part(ControlStore).operations()) == 1


def test_answers_are_kept_for_a_day_and_what_was_cut_off_for_minutes(tmp_path: Path) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    with OpsStore.open(f"sqlite:///{tmp_path}/ops.db", lambda: now) as store:
        answers: AnswerStore = store.part(AnswerStore)
        assert answers.claim("ann", "k", "r") is None
        under_way = answers.claim("ann", "k", "r")
        assert under_way is not None
        assert under_way.status == 0
        now += UNDER_WAY_FOR + timedelta(seconds=1)
        assert answers.claim("ann", "k", "r") is None
        answers.keep("ann", "k", 201, {"etag": "x"}, "{}")
        now += KEPT_FOR - timedelta(seconds=1)
        kept = answers.claim("ann", "k", "r")
        assert kept is not None
        assert (kept.status, kept.body, kept.headers) == (201, "{}", {"etag": "x"})
        now += timedelta(seconds=2)
        assert answers.claim("ann", "k", "r") is None


class Killed(BaseException):
    """The process is gone before it could answer."""


CUT = ["before the change", "after the change"]


@pytest.mark.parametrize("when", CUT)
@pytest.mark.parametrize("action", ["create", "approve", "reject", "deploy", "pause", "rollback"])
def test_a_kill_at_any_moment_leaves_the_key_as_good_as_the_change(
    api: ApiClient, monkeypatch: pytest.MonkeyPatch, action: str, when: str
) -> None:
    """Sent again at once, it is carried out or gets its answer; never both, and never neither."""
    who, path, body = _ready(api, action)
    service, plain = api.service, getattr(api.service, action)

    def cut(*given: object, **more: object) -> object:
        if when == "after the change":
            plain(*given, **more)
        raise Killed

    headers = {"Idempotency-Key": "k-kill"}
    # The kept answer itself is cut off too: nothing after the change's own transaction is done.
    monkeypatch.setattr(service, action, cut)
    monkeypatch.setattr(AnswerStore, "keep", lambda *_: None)
    monkeypatch.setattr(AnswerStore, "drop", lambda *_: None)
    with pytest.raises(Killed):
        api("POST", path, who, json=body, headers=headers)
    monkeypatch.setattr(service, action, plain)
    before = len(api.store.part(ControlStore).audit())
    again = api("POST", path, who, json=body, headers=headers)
    assert again.status_code in (200, 201, 202), again.json()
    assert again.json()
    replayed = again.headers.get("Idempotent-Replayed") == "true"
    assert replayed == (when == "after the change")
    assert (len(api.store.part(ControlStore).audit()) == before) == replayed
    once_more = api("POST", path, who, json=body, headers=headers)
    assert once_more.headers["Idempotent-Replayed"] == "true"


def _ready(api: ApiClient, action: str) -> tuple[str, str, dict[str, Any]]:
    """Who sends what where, once everything that must come before it is done."""
    if action == "create":
        return "ann", FILTERS, dict(FILTER)
    revision = api("POST", FILTERS, "ann", json=FILTER).json()["revision"]
    if action in ("approve", "reject"):
        body = {"revision": revision} if action == "approve" else {"reason": "no"}
        return "bob", f"{ONE}/{action}", body
    api("POST", f"{ONE}/approve", "bob", json={"revision": revision})
    if action != "deploy":
        _run(api)
    if action == "rollback":
        changed = {**FILTER, "description": "second"}
        made = api("PUT", ONE, "ann", json=changed, headers=_match(api)).json()
        api("POST", f"{ONE}/approve", "bob", json={"revision": made["revision"]})
        _run(api)
    return "dan", f"{ONE}/{action}", {}


def _match(api: ApiClient) -> dict[str, str]:
    return {"If-Match": api("GET", ONE, "vera").headers["ETag"]}


def _run(api: ApiClient) -> None:
    api("POST", f"{ONE}/deploy", "dan")
    reconciler = Reconciler(api.store, None, api.service.targets)
    reconciler.step()
    api.accept_deployments()
    reconciler.step()
    reconciler.close()


def test_a_rollback_names_what_it_takes_to_run(api: ApiClient) -> None:
    who, path, _ = _ready(api, "rollback")
    stale = api("POST", path, who, json={"runningVersion": 1})
    assert (stale.status_code, stale.json()["code"]) == (412, "HG-6005")
    assert api("POST", path, who, json={"runningVersion": 2}).status_code == 202


def test_revisions_say_who_decided_what(api: ApiClient) -> None:
    who, path, body = _ready(api, "rollback")
    api("POST", path, who, json=body)
    versions = api("GET", f"{ONE}/revisions", "vera").json()["revisions"]
    assert [(one["version"], one["restores"]) for one in versions] == [(1, None), (2, None), (3, 1)]
    for one in versions:
        (decision,) = one["decisions"]
        assert (decision["by"], decision["decision"], decision["targets"]) == (
            "bob",
            "approved",
            ["engine"],
        )


def test_an_operator_turns_off_what_runs_and_an_author_does_not(api: ApiClient) -> None:
    _ready(api, "pause")
    off = {**FILTER, "enabled": False}
    answers = {
        who: api("PUT", ONE, who, json=off, headers=_match(api)).status_code
        for who in ("ann", "bob", "olga")
    }
    assert answers == {"ann": 403, "bob": 403, "olga": 200}
    assert api("DELETE", ONE, "ann", headers=_match(api)).status_code == 202


# Pages


def test_pages_have_every_filter_once_while_others_are_made(api: ApiClient) -> None:
    names = [f"filter-{number:02}" for number in range(7)]
    for name in names:
        api("POST", FILTERS, "ann", json={**FILTER, "id": name, "outputTopic": f"t-{name}"})
    seen: list[str] = []
    after = ""
    for turn in itertools.count():
        page = api("GET", f"{FILTERS}?limit=3{after}", "vera")
        assert page.json()["total"] >= 7
        seen += [one["id"] for one in page.json()["filters"]]
        if turn == 0:
            body = {**FILTER, "id": "aaa-comes-before", "outputTopic": "t-aaa"}
            assert api("POST", FILTERS, "ann", json=body).status_code == 201
        if page.json()["next"] is None:
            assert "Link" not in page.headers
            break
        assert 'rel="next"' in page.headers["Link"]
        after = f"&after={page.json()['next']}"
    assert seen == names


def test_the_link_to_the_next_page_asks_for_the_same(api: ApiClient) -> None:
    for number in range(3):
        body = {**FILTER, "id": f"f-{number}", "outputTopic": f"t-{number}"}
        api("POST", FILTERS, "ann", json=body)
    query = f"status=pending_approval&consumer={FILTER['consumerId']}&q=a%26b&limit=1"
    assert api("GET", f"{FILTERS}?{query}", "vera").json()["total"] == 0
    page = api("GET", f"{FILTERS}?{query.replace('a%26b', 'f-')}", "vera")
    link = page.headers["Link"].partition(">")[0].removeprefix("<")
    assert "status=pending_approval" in link
    assert f"consumer={FILTER['consumerId']}" in link
    following = api("GET", link, "vera").json()
    assert [one["id"] for one in following["filters"]] == ["f-1"]


def test_a_deleted_filter_keeps_its_history(api: ApiClient, etag: str) -> None:
    api("DELETE", ONE, "ann", headers={"If-Match": etag})
    assert api("GET", ONE, "vera").status_code in (200, 404)
    assert api("GET", f"{ONE}/revisions", "vera").json()["revisions"][0]["version"] == 1
    assert api("GET", f"{ONE}/ledger", "vera").json()["ranges"] == []
    assert api("GET", f"{FILTERS}/never-there/ledger", "vera").status_code == 404


def test_filters_are_found_by_status_consumer_and_words(api: ApiClient) -> None:
    api("POST", FILTERS, "ann", json=FILTER)
    other = {**FILTER, "id": "other", "name": "Loans", "consumerId": "bank", "outputTopic": "loans"}
    made = api("POST", FILTERS, "ann", json=other).json()
    api("POST", f"{FILTERS}/other/approve", "bob", json={"revision": made["revision"]})

    def found(query: str) -> list[str]:
        page = api("GET", f"{FILTERS}?{query}", "vera").json()
        assert page["total"] == len(page["filters"])
        return [one["id"] for one in page["filters"]]

    assert found("status=approved") == ["other"]
    assert found("consumer=bank") == ["other"]
    assert found("q=LOANS") == ["other"]
    assert found("q=%25") == []
    assert found("status=deployed") == []
