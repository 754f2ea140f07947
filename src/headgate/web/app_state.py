"""What all routes of one server depend on, and the steps that the server repeats in the background.

A route takes the state by `ServedHere`. A repeated step runs in a thread of its own, is retried after a
failure and reports its last error, which `/readyz` and `/metrics` show.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Request
from fastapi.routing import APIRoute
from sqlalchemy.exc import SQLAlchemyError

from headgate.config.settings import Settings
from headgate.core.identity.authentication import Authenticator
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.metrics.names import Family, Metric
from headgate.errors import HeadgateError
from headgate.web.limits import Places, WrongKeys

_LOG = logging.getLogger("headgate.api")


class Repeated:
    """A step that is taken again and again in a thread of its own; what fails is tried again."""

    def __init__(self, name: str, seconds: float, step: Callable[[], object]) -> None:
        self.name, self._seconds, self._step = name, seconds, step
        self._stop, self._trouble = threading.Event(), ""
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self, seconds: float = 10.0) -> None:
        """End after the step that is being taken."""
        self._stop.set()
        self._thread.join(seconds)

    def trouble(self) -> str:
        """Why the last step failed; empty when it did not."""
        return self._trouble

    def _run(self) -> None:
        while not self._stop.is_set():
            self._take()
            self._stop.wait(self._seconds)

    def _take(self) -> None:
        try:
            self._step()
            if self._trouble:
                _LOG.warning("%s: works again", self.name)
            self._trouble = ""
        except HeadgateError as error:
            self._note(error.one_line)
        except Exception as error:
            # One fault of ours must not end what has to go on; the trace is for the log.
            if self._note(f"{type(error).__name__}: {error}"):
                _LOG.error("%s failed", self.name, exc_info=error)

    def _note(self, words: str) -> bool:
        """Said once, not twice a second; whether it is new."""
        new = words != self._trouble
        if new:
            _LOG.warning("%s: %s", self.name, words)
        self._trouble = words
        return new


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


REQUESTS = Metric(
    "headgate_api_requests_total",
    "counter",
    "requests",
    ("operation", "status"),
    "Requests that were answered.",
)
SECONDS = Metric(
    "headgate_api_seconds_total",
    "counter",
    "seconds",
    ("operation",),
    "Time that they took together.",
)


class Counts:
    """Counted by operation, never by path or caller: those are as many as people like."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, str]] = Counter()
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def add(self, operation: str, status: int, seconds: float) -> None:
        with self._lock:
            self._requests[operation, str(status)] += 1
            self._seconds[operation] += seconds

    def families(self) -> tuple[Family, ...]:
        with self._lock:
            requests = tuple(sorted(self._requests.items()))
            seconds = tuple(((name,), spent) for name, spent in sorted(self._seconds.items()))
        return Family(REQUESTS, requests), Family(SECONDS, seconds)


@dataclass(frozen=True)
class Served:
    """One per app; a route asks for it with `ServedHere`."""

    settings: Settings
    store: OpsStore
    authenticator: Authenticator
    store_probe: StoreProbe
    routes: tuple[APIRoute, ...]
    counts: Counts = field(default_factory=Counts)
    places: Places = field(default_factory=Places)
    wrong_keys: WrongKeys = field(default_factory=WrongKeys)
    # Set when the server is asked to stop: streams end then, and nothing new is begun.
    stopping: threading.Event = field(default_factory=threading.Event)
    # What runs beside the answers, each with what troubles it now.
    troubles: dict[str, Callable[[], str]] = field(default_factory=dict[str, Callable[[], str]])
    # Lets go of what capabilities hold for this app.
    closing: ExitStack = field(default_factory=ExitStack)


def served(request: Request) -> Served:
    return request.app.state.served


ServedHere = Annotated[Served, Depends(served)]
