"""What the routes of one server stand on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Request

from headgate.control.identity.authenticate import Authenticator
from headgate.control.service import FilterService
from headgate.settings import Settings
from headgate.store.ops import OpsStore


@dataclass(frozen=True)
class Served:
    """One per app; a route asks for it with `ServedHere`."""

    settings: Settings
    store: OpsStore
    service: FilterService
    authenticator: Authenticator
    # Set when the server is asked to stop: streams end then, and nothing new is begun.
    stopping: threading.Event = field(default_factory=threading.Event)
    # What runs beside the answers, each with what troubles it now.
    troubles: dict[str, Callable[[], str]] = field(default_factory=dict[str, Callable[[], str]])


def served(request: Request) -> Served:
    return request.app.state.served


ServedHere = Annotated[Served, Depends(served)]
