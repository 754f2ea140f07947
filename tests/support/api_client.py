"""The HTTP API as an ASGI app over a store of its own, called in this process without a socket."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI
from tests.support.filter_documents import DEALER

from headgate.api.app import create_app
from headgate.config.settings import Settings
from headgate.core.identity.api_keys import Keys, KeyStore
from headgate.core.ledger.ops_store import OpsStore
from headgate.filters.control.service import FilterService
from headgate.filters.store.model import Seen, Standing
from headgate.filters.store.routing import RoutingStore
from headgate.filters.targets.deployment import open_targets

FILTER = DEALER
FILTERS = "/api/v1/filters"
ONE = f"{FILTERS}/{FILTER['id']}"


@dataclass
class ApiClient:
    """Calls the app with the API key of a named person, or without a key."""

    app: FastAPI
    store: OpsStore
    service: FilterService
    peer: str = "127.0.0.1"
    keys: dict[str, str] = field(default_factory=dict)

    def create_key(self, name: str, *roles: str, days: float | None = 1) -> str:
        """Create an API key of this name with these roles; later calls as `name` use it."""
        self.keys[name] = (
            Keys(self.store.part(KeyStore)).create(name, roles, days, by="test").secret
        )
        return self.keys[name]

    def __call__(
        self,
        method: str,
        path: str,
        who: str | None = None,
        headers: Mapping[str, str] | None = None,
        **more: Any,
    ) -> httpx.Response:
        given = dict(headers or {})
        if who is not None:
            given.setdefault("Authorization", f"Bearer {self.keys[who]}")
        return asyncio.run(self._ask(method, path, given, more))

    async def _ask(
        self, method: str, path: str, headers: Mapping[str, str], more: dict[str, Any]
    ) -> httpx.Response:
        transport = httpx.ASGITransport(self.app, client=(self.peer, 4711))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:80") as http:
            return await http.request(method, path, headers=headers, **more)

    def accept_deployments(self) -> None:
        """Write to the store what a router writes that takes up every wanted filter."""
        self.store.part(RoutingStore).see(
            [
                Seen(
                    one.filter,
                    one.source,
                    one.revision,
                    one.deployment,
                    Standing.PAUSED if one.paused else Standing.LIVE,
                    "set",
                    {"0": 7},
                )
                for one in self.store.part(RoutingStore).wanted()
            ]
        )


@contextmanager
def open_api_client(home: Path, **settings: Any) -> Generator[ApiClient]:
    """An app over the ops store in `home`; nobody has a key until `create_role_keys`."""
    with OpsStore.open(f"sqlite:///{home}/ops.db") as store:
        chosen = Settings(root=home, **settings)
        service = FilterService(store, None, open_targets(chosen, store))
        yield ApiClient(create_app(chosen, store, service), store, service)


def create_role_keys(api: ApiClient) -> ApiClient:
    """Create one key for each role: ann is the author, bob approves, dan deploys, and so on."""
    for name, role in {
        "ann": "author",
        "bob": "approver",
        "dan": "deployer",
        "olga": "operator",
        "vera": "viewer",
        "audrey": "auditor",
        "adam": "admin",
        "paul": "producer",
    }.items():
        api.create_key(name, role)
    return api
