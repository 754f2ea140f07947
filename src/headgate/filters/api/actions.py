"""Routes that act on a filter: generate, validate, approve, reject, deploy, roll back, pause, resume, and its history.

Deploy, rollback, pause and resume begin an operation: 202 with its address, or 200 where it ended within the
seconds of `Prefer: wait=N`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, TypeVar

import anyio
from fastapi import APIRouter, Body, Depends, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from headgate.core.identity.roles import Identity
from headgate.filters.api.filters import (
    ETAG,
    PATH,
    FilterId,
    FiltersHere,
    FilterState,
    kept,
    tagged,
)
from headgate.filters.api.models import (
    TARGET,
    ApproveIn,
    DeployIn,
    DeploymentOut,
    DiffOut,
    FilterOut,
    GeneratedOut,
    LedgerOut,
    RejectIn,
    RevisionList,
    RevisionOut,
    RollbackIn,
    StatusOut,
    ValidateIn,
    ValidationOut,
)
from headgate.filters.store.model import Operation
from headgate.filters.store.routing import RoutingStore
from headgate.web import problems
from headgate.web.authentication import allowed
from headgate.web.idempotency import IdempotentRoute, OnceHere

MOST_SECONDS = 60
_LOOK_EVERY = 0.1
_WAIT = re.compile(r"(?:^|[,;\s])wait\s*=\s*\"?(\d{1,6})\"?(?=$|[,;\s])", re.IGNORECASE)


def wanted_seconds(request: Request) -> int:
    """What the caller would wait; a preference that cannot be read is none (RFC 7240)."""
    found = _WAIT.search(request.headers.get("prefer", ""))
    return min(int(found[1]), MOST_SECONDS) if found else 0


async def answered(request: Request, here: FilterState, begun: Callable[[], Operation]) -> Response:
    """200 once what begins here has ended, else 202; with the place where it can be followed."""
    operation, seconds = await run_in_threadpool(begun), wanted_seconds(request)
    until = time.monotonic() + seconds
    while not operation.state.ended and time.monotonic() < until and not here.stopping.is_set():
        await anyio.sleep(_LOOK_EVERY)
        operation = await run_in_threadpool(here.service.operation, operation.id)
    record = await run_in_threadpool(here.service.get, operation.filter_id)
    headers = {"Location": f"/api/v1/operations/{operation.id}"}
    if seconds:
        headers["Preference-Applied"] = f"wait={seconds}"
    body = DeploymentOut.of(operation, record).model_dump_json(by_alias=True)
    status = 200 if operation.state.ended else 202
    return Response(body, status, headers=headers, media_type="application/json")


router = APIRouter(prefix=PATH + "/{id}", tags=["filters"], route_class=IdempotentRoute)

_Route = TypeVar("_Route", bound=Callable[..., Awaitable[Response]])
Version = Annotated[int, Query(ge=1, le=2**31 - 1)]
READ = problems.responses(404)
CHANGED: dict[int | str, dict[str, Any]] = problems.responses(404, 409, 412) | {
    200: {"headers": ETAG}
}
_PLACE = {"Location": {"description": "The operation.", "schema": {"type": "string"}}}
# The model is named by hand: the answer is made where the status is known.
ASKED: dict[int | str, dict[str, Any]] = problems.responses(404, 409, 412, 503) | {
    200: {"model": DeploymentOut, "headers": _PLACE, "description": "It has ended."},
    202: {"model": DeploymentOut, "headers": _PLACE, "description": "It is under way."},
}


@router.post("/generate", operation_id="generateFilter", responses=READ)
def generate(
    by: Annotated[Identity, Depends(allowed("generateFilter"))],
    here: FiltersHere,
    id: FilterId,
    target: Annotated[str | None, Query(pattern=TARGET)] = None,
) -> GeneratedOut:
    """The SQL of the newest version as a target is sent it: where it runs, else the engine."""
    return GeneratedOut.of(here.service.generate(id, target))


@router.post("/validate", operation_id="validateFilter", responses=READ)
def validate(
    by: Annotated[Identity, Depends(allowed("validateFilter"))],
    here: FiltersHere,
    id: FilterId,
    body: Annotated[ValidateIn | None, Body()] = None,
) -> ValidationOut:
    """Whether the newest version is valid, and SQL sent along is the one we generate."""
    found = here.service.validate(id, body.sql if body else None)
    return ValidationOut.model_validate(vars(found))


@router.post("/approve", operation_id="approveFilter", responses=CHANGED)
def approve(
    by: Annotated[Identity, Depends(allowed("approveFilter"))],
    here: FiltersHere,
    id: FilterId,
    body: ApproveIn,
    response: Response,
    once: OnceHere,
) -> FilterOut:
    """Yes to exactly this revision. Nobody approves what they wrote."""
    return tagged(here.service.approve(by, id, body.revision, body.comment, kept(once)), response)


@router.post("/reject", operation_id="rejectFilter", responses=CHANGED)
def reject(
    by: Annotated[Identity, Depends(allowed("rejectFilter"))],
    here: FiltersHere,
    id: FilterId,
    body: RejectIn,
    response: Response,
    once: OnceHere,
) -> FilterOut:
    """No, and why."""
    return tagged(here.service.reject(by, id, body.reason, kept(once)), response)


def asking(action: str) -> Callable[[_Route], _Route]:
    """A route that begins an operation: 202, or 200 where it ended while it was waited for."""
    return router.post(
        f"/{action}",
        operation_id=f"{action}Filter",
        response_model=None,
        responses=ASKED,
        status_code=202,
    )


@asking("deploy")
async def deploy(
    by: Annotated[Identity, Depends(allowed("deployFilter"))],
    here: FiltersHere,
    id: FilterId,
    request: Request,
    once: OnceHere,
    body: Annotated[DeployIn | None, Body()] = None,
) -> Response:
    """Let the approved version run. `Prefer: wait=30` waits for it."""
    target = (body or DeployIn()).target
    return await answered(request, here, lambda: here.service.deploy(by, id, target, kept(once)))


@asking("rollback")
async def rollback(
    by: Annotated[Identity, Depends(allowed("rollbackFilter"))],
    here: FiltersHere,
    id: FilterId,
    request: Request,
    once: OnceHere,
    body: Annotated[RollbackIn | None, Body()] = None,
) -> Response:
    """Let a version run again that was live before; 412 when another runs than `runningVersion`."""
    asked = body or RollbackIn()
    return await answered(
        request,
        here,
        lambda: here.service.rollback(by, id, asked.to_version, asked.running_version, kept(once)),
    )


@asking("pause")
async def pause(
    by: Annotated[Identity, Depends(allowed("pauseFilter"))],
    here: FiltersHere,
    id: FilterId,
    request: Request,
    once: OnceHere,
) -> Response:
    """Send nothing from the next batch on."""
    return await answered(request, here, lambda: here.service.pause(by, id, kept(once)))


@asking("resume")
async def resume(
    by: Annotated[Identity, Depends(allowed("resumeFilter"))],
    here: FiltersHere,
    id: FilterId,
    request: Request,
    once: OnceHere,
) -> Response:
    """Go on where it stopped, once somebody else has approved that."""
    return await answered(request, here, lambda: here.service.resume(by, id, kept(once)))


@router.get("/status", operation_id="filterStatus", responses=READ)
def status(
    by: Annotated[Identity, Depends(allowed("filterStatus"))], here: FiltersHere, id: FilterId
) -> StatusOut:
    """What is desired, what is observed, and since which offsets."""
    return StatusOut.of(here.service.status(id))


@router.get("/revisions", operation_id="filterRevisions", responses=READ)
def revisions(
    by: Annotated[Identity, Depends(allowed("filterRevisions"))], here: FiltersHere, id: FilterId
) -> RevisionList:
    """Every version and who decided on it, the oldest first; also of a filter that was deleted."""
    versions, approvals = here.service.revisions(id), here.service.approvals(id)
    return RevisionList(revisions=[RevisionOut.of(one, approvals) for one in versions])


@router.get("/diff", operation_id="filterDiff", responses=READ)
def diff(
    by: Annotated[Identity, Depends(allowed("filterDiff"))],
    here: FiltersHere,
    id: FilterId,
    before: Version,
    after: Version,
) -> DiffOut:
    """What two versions say differently."""
    return DiffOut.of(here.service.diff(id, before, after))


@router.get("/ledger", operation_id="filterLedger", responses=READ)
def ledger(
    by: Annotated[Identity, Depends(allowed("filterLedger"))], here: FiltersHere, id: FilterId
) -> LedgerOut:
    """Which revision judged which offsets: the proof that there is no gap and no overlap."""
    # A deleted filter keeps its history.
    here.service.revisions(id)
    return LedgerOut.of(here.store.part(RoutingStore).routed(id))
