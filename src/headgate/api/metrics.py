"""What the server counts of itself, for Prometheus."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.responses import PlainTextResponse

from headgate.core.identity.model import Identity
from headgate.core.metrics.exposition import CONTENT_TYPE, exposition
from headgate.core.metrics.metrics_names import Metric
from headgate.core.metrics.metrics_readings import Family
from headgate.filters.store.control_model import OperationState
from headgate.web import problems
from headgate.web.authentication import allowed
from headgate.web.served import ServedHere

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
FILTERS = Metric("headgate_filters", "gauge", "filters", ("status",), "Filters by status.")
UNDER_WAY = Metric(
    "headgate_operations_running", "gauge", "operations", (), "Operations that have not ended."
)
WAITING = Metric(
    "headgate_git_commits_waiting",
    "gauge",
    "commits",
    (),
    "Accepted versions that are not committed to git yet.",
)
TROUBLED = Metric(
    "headgate_background_failing",
    "gauge",
    "1 or 0",
    ("part",),
    "Whether the last step of the reconciler, or of git's remote, failed.",
)
router = APIRouter(tags=["health"])


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


@router.get(
    "/metrics",
    operation_id="metrics",
    response_class=PlainTextResponse,
    responses=problems.responses(),
)
def metrics(
    by: Annotated[Identity, Depends(allowed("metrics"))], here: ServedHere, request: Request
) -> PlainTextResponse:
    """Prometheus text."""
    control = here.store.control
    standing = Counter(record.status.value for record in control.filters())
    running = control.operations(states=(OperationState.RUNNING,))
    families = (
        *request.app.state.counts.families(),
        Family(FILTERS, tuple(((status,), n) for status, n in sorted(standing.items()))),
        Family(UNDER_WAY, (((), len(running)),)),
        Family(WAITING, (((), len(control.open_errands())),)),
        Family(TROUBLED, tuple(((name,), int(bool(it()))) for name, it in here.troubles.items())),
    )
    return PlainTextResponse(exposition(families), media_type=CONTENT_TYPE)
