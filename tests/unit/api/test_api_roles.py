"""Every operation × every role, as the OpenAPI document lists them (N3)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import APIRouter
from tests.support.api_client import ApiClient

from headgate.api import app as app_module
from headgate.config.settings import Settings
from headgate.core.identity.roles import OPERATIONS, PUBLIC, READS, ROLES
from headgate.web.authentication import allowed

# A parameter that no route has: whoever passes the guard's table is refused for it right after,
# so that nothing is carried out.
ODD = {"no-such-parameter": "1"}


def operations(api: ApiClient) -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """Name, method, path with its parameters filled in, and what the document says."""
    for path, methods in api.app.openapi()["paths"].items():
        filled = re.sub(r"\{\w+\}", "abc", path.replace("{code}", "HG-3001"))
        for method, operation in methods.items():
            yield operation["operationId"], method.upper(), filled, operation


async def answers(api: ApiClient, keys: dict[str, str]) -> dict[tuple[str, str], httpx.Response]:
    found: dict[tuple[str, str], httpx.Response] = {}
    transport = httpx.ASGITransport(api.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
        for name, method, path, _ in operations(api):
            for role, key in keys.items():
                given = {"Authorization": f"Bearer {key}"} if key else {}
                found[name, role] = await http.request(method, path, headers=given, params=ODD)
    return found


def test_every_operation_answers_each_role_as_its_rule_says(api: ApiClient) -> None:
    keys = {role: api.create_key(f"one-{role}", role) for role in ROLES} | {"nobody": ""}
    found = asyncio.run(answers(api, keys))
    assert len(found) == len(list(operations(api))) * (len(ROLES) + 1)
    for (name, role), answer in found.items():
        if name in PUBLIC:
            assert answer.status_code == 200, (name, role)
        elif role == "nobody":
            assert answer.status_code == 401, (name, role)
        elif role in OPERATIONS[name]:
            assert answer.status_code == 422, (name, role)
            assert answer.json()["errors"][0]["parameter"] == "no-such-parameter"
        else:
            assert answer.status_code == 403, (name, role)


def test_the_document_names_the_roles_of_every_operation(api: ApiClient) -> None:
    for name, _, _, operation in operations(api):
        assert name in PUBLIC or operation["x-roles"] == sorted(OPERATIONS[name])
        assert name in PUBLIC or operation["security"]


def test_every_rule_belongs_to_an_operation_that_is_served(api: ApiClient) -> None:
    assert {name for name, *_ in operations(api)} == set(OPERATIONS) | PUBLIC


def test_an_operation_without_a_rule_cannot_be_guarded() -> None:
    with pytest.raises(LookupError):
        allowed("openEverything")


def test_a_route_without_its_guard_fails_the_build(
    api: ApiClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    router = APIRouter()

    @router.get("/api/v1/everything", operation_id="openEverything")
    def everything() -> dict[str, str]:
        return {}

    monkeypatch.setattr(app_module, "ROUTERS", (*app_module.ROUTERS, router))
    with pytest.raises(LookupError, match="openEverything"):
        app_module.create_app(Settings(root=tmp_path), api.store, api.service)


def test_what_may_be_read_without_any_key_changes_nothing(api: ApiClient) -> None:
    asking = {
        "generateFilter",
        "validateFilter",
        "validateDocument",
        "dryRunFilter",
        "dryRunDocument",
    }
    for name, method, *_ in operations(api):
        if name in READS:
            assert method == "GET" or name in asking
        elif name not in PUBLIC:
            assert method in ("POST", "PUT", "DELETE"), name


def test_a_producer_may_only_post_events() -> None:
    assert {name for name, roles in OPERATIONS.items() if "producer" in roles} == {
        "postEvent",
        "postEvents",
        "eventsHealth",
    }
