"""Routes that report on the server itself: liveness, readiness, version, and Prometheus metrics."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

from fastapi import APIRouter, Depends, Response
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel

from headgate import __version__
from headgate.core.identity.roles import Identity
from headgate.core.metrics.names import Metric
from headgate.core.metrics.prometheus import CONTENT_TYPE, exposition
from headgate.core.metrics.readings import Family
from headgate.filters.store.control import ControlStore
from headgate.filters.store.model import OperationState
from headgate.web import problems
from headgate.web.app_state import ServedHere
from headgate.web.authentication import allowed

router = APIRouter(tags=["health"])


class Health(BaseModel):
    """`parts` names what was asked, and how it is."""

    status: str
    parts: dict[str, str] = {}


class Version(BaseModel):
    version: str


@router.get("/livez", operation_id="livez")
async def livez() -> Health:
    """The process answers."""
    # `async`, so that it waits for no thread: those may all wait for the ops store.
    return Health(status="ok")


@router.get("/readyz", operation_id="readyz", responses={503: {"model": Health}})
def readyz(here: ServedHere, response: Response) -> Health:
    """The ops store takes writes, and the server is not stopping."""
    parts = {"opsStore": "ok" if here.store_probe.is_writable() else "away"}
    parts |= {name: _shown(trouble()) for name, trouble in here.troubles.items()}
    if here.stopping.is_set() or parts["opsStore"] != "ok":
        response.status_code = 503
        return Health(status="stopping" if here.stopping.is_set() else "unready", parts=parts)
    return Health(status="ok", parts=parts)


def _shown(trouble: str) -> str:
    """What fails, without the details, which are for the log and for those who have a key."""
    return f"troubled: {trouble.partition(' | ')[0]}" if trouble else "ok"


@router.get("/version", operation_id="version")
def version() -> Version:
    """Which Headgate this is."""
    return Version(version=__version__)


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


@router.get(
    "/metrics",
    operation_id="metrics",
    response_class=PlainTextResponse,
    responses=problems.responses(),
)
def metrics(
    by: Annotated[Identity, Depends(allowed("metrics"))], here: ServedHere
) -> PlainTextResponse:
    """Prometheus text."""
    control = here.store.part(ControlStore)
    standing = Counter(record.status.value for record in control.filters())
    running = control.operations(states=(OperationState.RUNNING,))
    families = (
        *here.counts.families(),
        Family(FILTERS, tuple(((status,), n) for status, n in sorted(standing.items()))),
        Family(UNDER_WAY, (((), len(running)),)),
        Family(WAITING, (((), len(control.open_errands())),)),
        Family(TROUBLED, tuple(((name,), int(bool(it()))) for name, it in here.troubles.items())),
    )
    return PlainTextResponse(exposition(families), media_type=CONTENT_TYPE)
