"""What happens, as it happens: server-sent events, numbered as the audit log numbers its entries."""

from __future__ import annotations

import time
import weakref
from collections.abc import AsyncIterator
from typing import Annotated

import anyio
from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from headgate.core.identity.model import Identity
from headgate.core.identity.policy import may
from headgate.errors import HeadgateError
from headgate.filters.api.api_models import Happened
from headgate.filters.store.control_model import AuditEntry
from headgate.web import problems
from headgate.web.authentication import allowed, credentials
from headgate.web.limits import STREAMS, Places
from headgate.web.served import Served, ServedHere

MEDIA_TYPE = "text/event-stream"
LOOK_EVERY = 0.5
# A comment now and then, so that neither side takes the silence for a broken line; and whether
# the caller may still listen.
ALIVE_EVERY = 10.0
router = APIRouter(prefix="/api/v1/events", tags=["events"])


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


@router.get(
    "/stream",
    operation_id="streamEvents",
    response_class=StreamingResponse,
    responses=problems.responses(429) | {200: STREAM},
)
async def stream(
    by: Annotated[Identity, Depends(allowed("streamEvents"))],
    here: ServedHere,
    request: Request,
    after: Annotated[int | None, Query(ge=0, le=2**63 - 1)] = None,
    last_event_id: Annotated[str | None, Header(pattern=r"^\d{1,18}$")] = None,
    most_seconds: Annotated[float, Query(alias="for", gt=0, le=86_400)] = 86_400,
) -> StreamingResponse:
    """From now on, or after the event that `Last-Event-ID` names."""
    places: Places = request.app.state.places
    places.take(STREAMS, by.name)
    begin = int(last_event_id) if last_event_id is not None else after
    shown = credentials(request)
    events = _events(here, begin, time.monotonic() + most_seconds, shown)
    # Also for a stream whose caller was gone before it began: then nothing in it ever ran.
    weakref.finalize(events, places.give_back, STREAMS, by.name)
    return StreamingResponse(events, media_type=MEDIA_TYPE)


async def _events(
    here: Served, after: int | None, until: float, shown: str | None
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


def _still_holds(here: Served, shown: str | None) -> bool:
    """A key that is revoked meanwhile ends the stream; so does the first key for nobody's."""
    try:
        identity = here.authenticator.identify(shown)
    except HeadgateError:
        return False
    return may(identity, "streamEvents") if identity else here.authenticator.is_new


def _newest(here: Served) -> int:
    return here.store.control.audit_head().seq


def _written(entry: AuditEntry) -> str:
    data = Happened.of(entry).model_dump_json(by_alias=True)
    return f"id: {entry.seq}\nevent: {entry.action}\ndata: {data}\n\n"
