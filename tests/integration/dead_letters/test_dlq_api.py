"""Dead letters over HTTP: masked, paged, revealed only to operators, sent again once."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.api_client import ApiClient
from tests.support.dead_letter_table import DeadLetterRow, settings_at, write_dead_letters

from headgate.api.app import create_app
from headgate.config.settings import Settings
from headgate.core.ledger.ops_store import OpsStore
from headgate.filters.control.service import FilterService
from headgate.filters.store.control import ControlStore

LETTERS = "/api/v1/dead-letters"
ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    project = tmp_path_factory.mktemp("letters")
    (project / "contracts").mkdir()
    (project / "env").symlink_to(ROOT / "env")
    shipped = ROOT / "contracts" / "business_table.hash.yml"
    text = shipped.read_text("utf-8").replace("name: col1", "name: col1, sensitive: true", 1)
    (project / "contracts" / "own.hash.yml").write_text(text)
    found = settings_at(project)
    write_dead_letters(
        found,
        [
            DeadLetterRow(
                "bronze-orders", "not_json", "orders", n, b'{"col1": "canary-%d"}' % n, minutes=n
            )
            for n in range(5)
        ],
    )
    return found


@pytest.fixture(scope="module")
def api(settings: Settings) -> Iterator[ApiClient]:
    settings.home.mkdir(parents=True, exist_ok=True)
    with OpsStore.open(settings.ops_store_url) as store:
        service = FilterService(store, None, {})
        asked = ApiClient(create_app(settings, store, service), store, service)
        for role in ("viewer", "operator", "auditor"):
            asked.create_key(role, role)
        yield asked
        asked.app.state.served.stopping.set()
        for thread in threading.enumerate():
            if thread.name.startswith("redrive-"):
                thread.join(120)


def ids(api: ApiClient) -> list[str]:
    return [item["id"] for item in api("GET", LETTERS, "viewer").json()["items"]]


def test_letters_come_page_by_page_without_content(api: ApiClient):
    first = api("GET", f"{LETTERS}?limit=3", "viewer")
    rest = api("GET", f"{LETTERS}?limit=3&after={first.json()['next']}", "viewer").json()
    assert first.status_code == 200
    assert "canary" not in first.text
    assert (len(first.json()["items"]), len(rest["items"]), rest["next"]) == (3, 2, None)


def test_letters_are_grouped(api: ApiClient):
    [group] = api("GET", f"{LETTERS}/groups?topic=orders", "viewer").json()["items"]
    assert (group["job"], group["reasonCode"], group["letters"]) == ("bronze-orders", "not_json", 5)


def test_tagged_values_are_shown_to_an_operator_who_asks_for_them_and_that_is_audited(
    api: ApiClient,
):
    path = f"{LETTERS}/{ids(api)[0]}"
    assert api("GET", path, "viewer").status_code == 403
    masked = api("GET", path, "auditor")
    assert (masked.json()["masked"], masked.json()["value"]) == (True, {"col1": "********"})
    assert api("GET", f"{path}?reveal=true", "auditor").status_code == 403
    revealed = api("GET", f"{path}?reveal=true", "operator").json()
    assert revealed["value"] == {"col1": "canary-4"}
    entry = api.store.part(ControlStore).audit()[-1]
    assert (entry.actor, entry.action) == ("operator", "reveal_dead_letter")


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (f"{LETTERS}/{'0' * 20}", 404),
        (f"{LETTERS}/zz", 422),
        (f"{LETTERS}?limit=0", 422),
        (f"{LETTERS}?job=%00", 422),
        (f"{LETTERS}?since=yesterday", 422),
        (f"{LETTERS}?nobody=1", 422),
        ("/api/v1/redrives/redrive-1", 404),
    ],
)
def test_what_cannot_be_is_a_problem(api: ApiClient, path: str, status: int):
    answer = api("GET", path, "operator")
    assert (answer.status_code, answer.headers["content-type"]) == (
        status,
        "application/problem+json",
    )


def test_a_plan_sends_nothing_and_needs_a_choice(api: ApiClient, settings: Settings):
    plan = api(
        "POST", f"{LETTERS}:plan", "operator", json={"reason": "not_json", "limit": 2}
    ).json()
    assert (plan["letters"], plan["topics"]) == (2, {"orders": 2})
    assert api("POST", f"{LETTERS}:plan", "operator", json={}).status_code == 422
    inner = {"job": "bronze-orders", "to": "connect-configs"}
    assert api("POST", f"{LETTERS}:plan", "operator", json=inner).status_code == 400
    assert api("POST", f"{LETTERS}:plan", "viewer", json={"job": "x"}).status_code == 403
    assert not list((settings.home / "redrives").glob("*"))


def test_a_redrive_is_begun_told_and_can_be_resumed(api: ApiClient):
    """No broker is there: it stays open, and nothing of it is lost."""
    body: dict[str, Any] = {"ids": ids(api)[:2]}
    begun = api("POST", f"{LETTERS}:redrive", "operator", json=body)
    assert begun.status_code == 202
    place = begun.headers["Location"]
    again = api("POST", f"{LETTERS}:redrive", "operator", json=body).json()
    assert (begun.json()["planned"], again["planned"], again["skipped"]) == (
        2,
        0,
        {"it was sent again before": 2},
    )
    deadline = time.monotonic() + 120
    while api("GET", place, "viewer").json()["left"] != 2:
        assert time.monotonic() < deadline
    name = place.rpartition("/")[2]
    resumed = api("POST", f"{LETTERS}:redrive", "operator", json={"resume": name})
    assert resumed.json()["redrive"] == name
