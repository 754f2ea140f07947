"""Routes of operations, the audit log, drift from git, fields of conditions, and the live event stream.

The stream is server-sent events, numbered as the entries of the audit log: `Last-Event-ID` goes on behind one.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import AsyncIterator
from typing import Annotated

import anyio
from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from headgate.core.identity.audit import AuditEntry
from headgate.core.identity.roles import Identity, may
from headgate.errors import HeadgateError
from headgate.filters.api.filters import FiltersHere, FilterState
from headgate.filters.api.models import (
    AuditList,
    AuditOut,
    DriftList,
    DriftOut,
    FieldList,
    FieldOut,
    Happened,
    MendIn,
    MendOut,
    OperationList,
    OperationOut,
)
from headgate.filters.control.revisions import document_text
from headgate.filters.git.sync import drift_of, mend
from headgate.filters.spec import COLUMNS, JSON_COLUMN, NUMBER_COLUMN
from headgate.filters.store.control import ControlStore
from headgate.filters.validation import OPERATORS, VALUE_TYPES
from headgate.web import problems
from headgate.web.authentication import allowed, credentials
from headgate.web.idempotency import IdempotentRoute
from headgate.web.limits import STREAMS
from headgate.web.problems import responses

MOST_SEQ = 2**63 - 1
router = APIRouter(prefix="/api/v1")


@router.get(
    "/operations",
    operation_id="listOperations",
    tags=["operations"],
    responses=problems.responses(),
)
def operations(
    by: Annotated[Identity, Depends(allowed("listOperations"))],
    here: FiltersHere,
    filter: Annotated[str | None, Query(max_length=100)] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> OperationList:
    """What targets were asked to do, the newest first."""
    found = here.service.operations(filter, limit=limit)
    return OperationList(operations=[OperationOut.of(one) for one in found])


@router.get(
    "/operations/{id}",
    operation_id="getOperation",
    tags=["operations"],
    responses=problems.responses(404),
)
def operation(
    by: Annotated[Identity, Depends(allowed("getOperation"))],
    here: FiltersHere,
    id: Annotated[str, Path(pattern=r"^[0-9a-f]{1,64}$")],
    response: Response,
) -> OperationOut:
    """One of them. `Retry-After` says when to look again."""
    found = here.service.operation(id)
    if not found.state.ended:
        response.headers["Retry-After"] = "1"
    return OperationOut.of(found)


@router.get("/audit", operation_id="listAudit", tags=["audit"], responses=problems.responses())
def audit(
    by: Annotated[Identity, Depends(allowed("listAudit"))],
    here: FiltersHere,
    after: Annotated[int, Query(ge=0, le=MOST_SEQ)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> AuditList:
    """Everything that was done, in its order; each entry is chained to the one before."""
    found = here.service.audit(after, limit)
    following = found[-1].seq if len(found) == limit else None
    return AuditList(entries=[AuditOut.of(entry) for entry in found], next=following)


@router.get("/drift", operation_id="listDrift", tags=["audit"], responses=problems.responses(503))
def drift(by: Annotated[Identity, Depends(allowed("listDrift"))], here: FiltersHere) -> DriftList:
    """Filters on which git and the ops store disagree."""
    git = here.service.git
    accepted = {
        one.filter_id: document_text(one.content)
        for one in here.store.part(ControlStore).accepted()
    }
    found = drift_of(git, accepted) if git else ()
    return DriftList(drift=[DriftOut.of(one) for one in found])


@router.get(
    "/schema/fields", operation_id="schemaFields", tags=["schema"], responses=problems.responses()
)
def fields(by: Annotated[Identity, Depends(allowed("schemaFields"))]) -> FieldList:
    """The columns of an event; `header_data` is JSON and takes a path."""
    found = [
        FieldOut(
            name=name,
            type="number" if name == NUMBER_COLUMN else "string",
            nested=name == JSON_COLUMN,
            operators=[op for op in OPERATORS if op != "matches" or name != NUMBER_COLUMN],
        )
        for name in COLUMNS
    ]
    return FieldList(fields=found, value_types=list(VALUE_TYPES))


drift_router = APIRouter(prefix="/api/v1", tags=["audit"], route_class=IdempotentRoute)


@drift_router.post("/drift:mend", operation_id="mendDrift", responses=responses(404, 409, 503))
def mend_drift(
    here: FiltersHere, by: Annotated[Identity, Depends(allowed("mendDrift"))], body: MendIn
) -> MendOut:
    """Mend drift on one side. What is submitted waits for a second person, as anything does."""
    return MendOut.of(mend(here.service, by, body.side, body.filters))


MEDIA_TYPE = "text/event-stream"
LOOK_EVERY = 0.5
# A comment now and then, so that neither side takes the silence for a broken line; and whether
# the caller may still listen.
ALIVE_EVERY = 10.0
stream_router = APIRouter(prefix="/api/v1/events", tags=["events"])


# Each event of the stream; `data` is the JSON of a `Happened`.
EVENT = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "event": {"type": "string"},
        "data": {
            "type": "string",
            "contentMediaType": "application/json",
            "contentSchema": {"$ref": "#/components/schemas/Happened"},
        },
    },
}
STREAM = {"description": "Events.", "content": {MEDIA_TYPE: {"schema": EVENT}}}


@stream_router.get(
    "/stream",
    operation_id="streamEvents",
    response_class=StreamingResponse,
    responses=problems.responses(429) | {200: STREAM},
)
async def stream(
    by: Annotated[Identity, Depends(allowed("streamEvents"))],
    here: FiltersHere,
    request: Request,
    after: Annotated[int | None, Query(ge=0, le=2**63 - 1)] = None,
    last_event_id: Annotated[str | None, Header(pattern=r"^\d{1,18}$")] = None,
    most_seconds: Annotated[float, Query(alias="for", gt=0, le=86_400)] = 86_400,
) -> StreamingResponse:
    """From now on, or after the event that `Last-Event-ID` names."""
    places = here.places
    places.take(STREAMS, by.name)
    begin = int(last_event_id) if last_event_id is not None else after
    shown = credentials(request)
    events = _events(here, begin, time.monotonic() + most_seconds, shown)
    # Also for a stream whose caller was gone before it began: then nothing in it ever ran.
    weakref.finalize(events, places.give_back, STREAMS, by.name)
    return StreamingResponse(events, media_type=MEDIA_TYPE)


async def _events(
    here: FilterState, after: int | None, until: float, shown: str | None
) -> AsyncIterator[str]:
    seq = await run_in_threadpool(_newest, here) if after is None else after
    yield "retry: 2000\n: open\n\n"
    told = time.monotonic()
    while not here.stopping.is_set() and time.monotonic() < until:
        for entry in await run_in_threadpool(here.service.events, seq):
            yield _written(entry)
            seq = entry.seq
        if time.monotonic() - told > ALIVE_EVERY:
            if not await run_in_threadpool(_still_holds, here, shown):
                return
            yield ": alive\n\n"
            told = time.monotonic()
        await anyio.sleep(LOOK_EVERY)


def _still_holds(here: FilterState, shown: str | None) -> bool:
    """A key that is revoked meanwhile ends the stream; so does the first key for nobody's."""
    try:
        identity = here.authenticator.identify(shown)
    except HeadgateError:
        return False
    return may(identity, "streamEvents") if identity else here.authenticator.is_new


def _newest(here: FilterState) -> int:
    return here.store.part(ControlStore).audit_head().seq


def _written(entry: AuditEntry) -> str:
    data = Happened.of(entry).model_dump_json(by_alias=True)
    return f"id: {entry.seq}\nevent: {entry.action}\ndata: {data}\n\n"
