"""The producers' door: events are checked, written to PostgreSQL, and never written twice."""

from __future__ import annotations

import threading
from http import HTTPStatus
from typing import Annotated, Any, cast

from fastapi import APIRouter, Depends, FastAPI, HTTPException, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from headgate.api.guard import allowed
from headgate.api.idempotency import IdempotentRoute
from headgate.api.problems import ProblemFault, problem_of, responses
from headgate.api.served import ServedHere
from headgate.control.identity.model import Identity
from headgate.errors import DeclarationError, DuplicateError, Fault, UsageError
from headgate.feeds.events.database import place_of
from headgate.feeds.events.json_text import Json, NotJsonError, parsed
from headgate.feeds.events.model import Event
from headgate.feeds.events.reading import Read, read_event
from headgate.feeds.events.schema import schema_of
from headgate.feeds.events.writer import EventWriter

MOST_EVENTS = 1_000
CREATED, CONFLICT = int(HTTPStatus.CREATED), int(HTTPStatus.CONFLICT)
UNFIT, MIXED = int(HTTPStatus.UNPROCESSABLE_ENTITY), int(HTTPStatus.MULTI_STATUS)
router = APIRouter(prefix="/api/v1/events", tags=["events"], route_class=IdempotentRoute)
_OPENING = threading.Lock()


class Answer(BaseModel):
    """What is answered about events; names as producers write them."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class EventAccepted(Answer):
    """The event is in PostgreSQL; filters see it as soon as Debezium has read it."""

    id: str = Field(examples=["service-dealer-001-test"])
    event_type: str
    status: str = "created"


class EventResult(Answer):
    """What became of one event of many: 201, 409 or 422; pointers lead into that event."""

    index: int
    id: str | None = None
    status: int
    detail: str = ""
    errors: list[ProblemFault] = []


class EventsResult(Answer):
    """What became of each; those that were created are in one transaction."""

    created: int
    refused: int
    results: list[EventResult]


class SourceHealth(Answer):
    status: str
    database: str


async def posted(request: Request) -> Json:
    """The body, its numbers exact."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and not kind.endswith("+json"):
        raise HTTPException(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "send Content-Type: application/json"
        )
    try:
        return parsed(await request.body())
    except NotJsonError as error:
        raise UsageError("the body is not JSON", why=str(error)) from None


def writer(request: Request, here: ServedHere) -> EventWriter:
    """One for each app, made when the first event comes."""
    state = request.app.state
    with _OPENING:
        if getattr(state, "event_writer", None) is None:
            state.event_writer = EventWriter(place_of(here.settings))
        return state.event_writer


def close(app: FastAPI) -> None:
    """Let go of the connections; the app may not serve events afterwards."""
    if found := cast("EventWriter | None", getattr(app.state, "event_writer", None)):
        found.close()


Posted = Annotated[Json, Depends(posted)]
WriterHere = Annotated[EventWriter, Depends(writer)]


def body_of(schema: dict[str, Any]) -> dict[str, Any]:
    """How the OpenAPI document shows a body that is read by ourselves."""
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def inlined(schema: dict[str, Any], definitions: dict[str, Any] | None = None) -> dict[str, Any]:
    """A schema without references: a path's schema has no place to keep definitions."""
    known = definitions if definitions is not None else schema.get("$defs", {})
    return {
        name: _inlined(value, known)
        for name, value in schema.items()
        if name not in ("$defs", "$schema", "discriminator")
    }


def _inlined(value: Any, known: dict[str, Any]) -> Any:
    if isinstance(value, list):
        return [_inlined(each, known) for each in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    found = cast("dict[str, Any]", value)
    if "$ref" in found:
        return inlined(known[str(found["$ref"]).rpartition("/")[2]], known)
    return inlined(found, known)


EVENT_SCHEMA = inlined(schema_of(Event))
EVENTS_SCHEMA = {"type": "array", "items": EVENT_SCHEMA, "minItems": 1, "maxItems": MOST_EVENTS}


@router.post(
    "",
    operation_id="postEvent",
    status_code=CREATED,
    responses=responses(409, 503),
    openapi_extra=body_of(EVENT_SCHEMA),
)
def post_event(
    by: Annotated[Identity, Depends(allowed("postEvent"))], body: Posted, to: WriterHere
) -> EventAccepted:
    """Accept one event: 409 when its id is known, 422 with everything that is wrong with it."""
    read = read_event(body)
    if not to.write([read]):
        raise duplicate(read.event.id)
    return EventAccepted(id=read.event.id, event_type=read.event.event_header.event_type)


@router.post(
    "/bulk",
    operation_id="postEvents",
    status_code=CREATED,
    responses={
        **responses(503),
        MIXED: {"model": EventsResult, "description": "Some events were refused."},
    },
    openapi_extra=body_of(EVENTS_SCHEMA),
)
def post_events(
    by: Annotated[Identity, Depends(allowed("postEvents"))],
    body: Posted,
    to: WriterHere,
    response: Response,
) -> EventsResult:
    """Accept many events, with an answer for each: 201 when all were created, else 207."""
    results = written(to, listed(body))
    created = sum(result.status == CREATED for result in results)
    if created < len(results):
        response.status_code = MIXED
    return EventsResult(created=created, refused=len(results) - created, results=results)


@router.get("/health", operation_id="eventsHealth", responses=responses(503))
def events_health(
    by: Annotated[Identity, Depends(allowed("eventsHealth"))], here: ServedHere, to: WriterHere
) -> SourceHealth:
    """PostgreSQL answers, and its tables are up to date."""
    to.check()
    return SourceHealth(status="ok", database=here.settings.postgres_db)


def listed(body: Json) -> list[Json]:
    """The events of a bulk request."""
    found = cast("list[Json]", body) if isinstance(body, list) else []
    if not 1 <= len(found) <= MOST_EVENTS:
        what = f"must be a list of 1 to {MOST_EVENTS:,} events"
        raise DeclarationError([Fault("", None, "", what, "Send several requests.")])
    return found


def written(to: EventWriter, bodies: list[Json]) -> list[EventResult]:
    """Write those that are right, and say of each what became of it."""
    judged = [_judged(body) for body in bodies]
    new = to.write([read for read in judged if isinstance(read, Read)])
    waiting = set(new)
    results: list[EventResult] = []
    for index, read in enumerate(judged):
        results.append(_result(index, read, waiting))
    return results


def _judged(body: Json) -> Read | DeclarationError:
    try:
        return read_event(body)
    except DeclarationError as error:
        return error


def _result(index: int, read: Read | DeclarationError, waiting: set[str]) -> EventResult:
    """Of two events with one id, the first is the one that was written."""
    if isinstance(read, DeclarationError):
        found = problem_of(read)
        return EventResult(index=index, status=UNFIT, detail=found.detail, errors=found.errors)
    id = read.event.id
    if id not in waiting:
        return EventResult(index=index, id=id, status=CONFLICT, detail=duplicate(id).what)
    waiting.remove(id)
    return EventResult(index=index, id=id, status=CREATED)


def duplicate(id: str) -> DuplicateError:
    return DuplicateError(
        f"there is an event {id} already",
        why="an id is given once",
        fix="nothing, when this was a repetition; else give the event another uuid",
    )
