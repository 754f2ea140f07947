"""The API served on a free loopback port, and a stand-in for the router that accepts every deployment."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headgate.api.server import Address, Server, serve
from headgate.config.settings import Settings
from headgate.core.identity.api_keys import Keys, KeyStore
from headgate.core.ledger.ops_store import OpsStore
from headgate.filters.api.client import Client
from headgate.filters.store.model import Seen, Standing
from headgate.filters.store.routing import RoutingStore

FILTER: dict[str, Any] = {
    "id": "service-by-dealer-001",
    "name": "Service Events for Dealer 001",
    "consumerId": "dealer-001-service-consumer",
    "outputTopic": "filtered-service-events-dealer-001",
    "conditions": [{"field": "event_type", "operator": "equals", "value": "CarServiceDone"}],
    "enabled": True,
}
ROLES = {"ann": "author", "bob": "approver", "dan": "deployer", "vera": "viewer", "adam": "admin"}


@dataclass
class RunningApi:
    """A served API: its settings, its URL and the API keys of some people by name."""

    settings: Settings
    url: str = ""
    keys: dict[str, str] = field(default_factory=dict)
    server: Server | None = None
    thread: threading.Thread | None = None

    def client(self, who: str | None) -> Client:
        return Client(self.url, self.keys[who] if who else None)

    def stop(self) -> None:
        assert self.server is not None
        assert self.thread is not None
        self.server.stop()
        self.thread.join(120)
        assert not self.thread.is_alive()


@contextmanager
def run_api(home: Path, *, keys: bool = True, **settings: Any) -> Generator[RunningApi]:
    """Serve the API over a home of its own until the block ends."""
    with serve_api(Settings(root=home, **settings), keys=keys) as api:
        yield api


@contextmanager
def serve_api(settings: Settings, *, keys: bool = True) -> Generator[RunningApi]:
    """Serve the API under these settings until the block ends; `keys` creates one key per role."""
    api = RunningApi(settings)
    settings.home.mkdir(parents=True, exist_ok=True)
    if keys:
        with OpsStore.open(api.settings.ops_store_url) as store:
            made = Keys(store.part(KeyStore))
            for name, role in ROLES.items():
                api.keys[name] = made.create(name, [role], 1, by="test").secret
    up = threading.Event()

    def told(url: str) -> None:
        api.url = url
        up.set()

    def begun(server: Server) -> None:
        api.server = server

    api.thread = threading.Thread(
        target=serve, args=(api.settings, Address("127.0.0.1", 0), told, begun), daemon=True
    )
    api.thread.start()
    assert up.wait(180)
    try:
        yield api
    finally:
        api.stop()


@contextmanager
def run_accepting_router(settings: Settings) -> Generator[None]:
    """Report every wanted filter as live or paused within moments, as the router does at a batch boundary."""
    done = threading.Event()

    def take_up() -> None:
        with OpsStore.open(settings.ops_store_url) as store:
            before: tuple[object, ...] | None = None
            while not done.wait(0.1):
                wanted = store.part(RoutingStore).wanted()
                if wanted != before:
                    before = wanted
                    store.part(RoutingStore).see(
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
                            for one in wanted
                        ]
                    )

    thread = threading.Thread(target=take_up, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join(60)
