"""What the routes of one server stand on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Request
from sqlalchemy.exc import SQLAlchemyError

from headgate.config.settings import Settings
from headgate.core.identity.authenticate import Authenticator
from headgate.core.ledger.ops_store import OpsStore
from headgate.filters.control.control_service import FilterService

PROBE_EVERY = 2.0
# Somebody else's write takes milliseconds; who holds the lock longer keeps others from writing.
PROBE_SECONDS = 1.0


class StoreProbe:
    """Whether the ops store takes writes; asked of it once in a while, however often probes come."""

    def __init__(self, store: OpsStore) -> None:
        self._store, self._lock = store, threading.Lock()
        self._looked_at, self._writable = -PROBE_EVERY, False

    def is_writable(self) -> bool:
        with self._lock:
            if time.monotonic() - self._looked_at >= PROBE_EVERY:
                self._writable = self._try_write()
                self._looked_at = time.monotonic()
            return self._writable

    def _try_write(self) -> bool:
        try:
            self._store.probe_write(PROBE_SECONDS)
        except SQLAlchemyError:
            return False
        return True


@dataclass(frozen=True)
class Served:
    """One per app; a route asks for it with `ServedHere`."""

    settings: Settings
    store: OpsStore
    service: FilterService
    authenticator: Authenticator
    store_probe: StoreProbe
    # Set when the server is asked to stop: streams end then, and nothing new is begun.
    stopping: threading.Event = field(default_factory=threading.Event)
    # What runs beside the answers, each with what troubles it now.
    troubles: dict[str, Callable[[], str]] = field(default_factory=dict[str, Callable[[], str]])


def served(request: Request) -> Served:
    return request.app.state.served


ServedHere = Annotated[Served, Depends(served)]
