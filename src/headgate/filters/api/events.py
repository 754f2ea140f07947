"""Routes for producers: check events and write each to PostgreSQL once, however often it is sent."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Generator
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any, cast

from fastapi import APIRouter, Depends, FastAPI, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from headgate.config.settings import Settings
from headgate.core.identity.roles import Identity
from headgate.declarations.errors import MOST_FAULTS
from headgate.errors import (
    DeclarationError,
    DuplicateError,
    Fault,
    HeadgateError,
    UnavailableError,
    UsageError,
)
from headgate.filters.api.filters import JsonBody
from headgate.filters.events.database import EventWriter, place_of
from headgate.filters.events.exact_json import Json, NotJsonError, parsed
from headgate.filters.events.model import Event, Read, read_event, schema_of
from headgate.web.app_state import ServedHere
from headgate.web.authentication import allowed
from headgate.web.idempotency import IdempotentRoute
from headgate.web.problems import ProblemFault, problem_of, responses

MOST_EVENTS = 1_000
CREATED, CONFLICT = int(HTTPStatus.CREATED), int(HTTPStatus.CONFLICT)
UNFIT, MIXED = int(HTTPStatus.UNPROCESSABLE_ENTITY), int(HTTPStatus.MULTI_STATUS)
router = APIRouter(prefix="/api/v1/events", tags=["events"], route_class=IdempotentRoute)
LOOK_AGAIN_SECONDS = 1.0
_LOG = logging.getLogger("headgate.api")


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


# Not `async`: it computes, and FastAPI runs it in a thread beside the event loop.
def posted(body: JsonBody) -> Json:
    """The body, its numbers exact."""
    try:
        return parsed(body)
    except NotJsonError as error:
        raise UsageError("the body is not JSON", why=str(error)) from None


class EventWriterHolder:
    """The writer of one app. While PostgreSQL is away its address is read again now and then.

    `headgate local up --with postgres` beside a running server writes where PostgreSQL listens.
    """

    def __init__(self, settings: Settings, reload: Callable[[], Settings]) -> None:
        self._settings, self._reload = settings, reload
        self._lock = threading.Lock()
        self._writer: EventWriter | None = None
        self._looked_at = time.monotonic()

    def get(self) -> EventWriter:
        """The writer, or UnavailableError while no address is known."""
        with self._lock:
            if self._writer is None:
                self._look_again()
                self._writer = EventWriter(place_of(self._settings))
            return self._writer

    def forget(self, writer: EventWriter) -> None:
        """PostgreSQL did not answer this writer: the next request looks for its address again."""
        with self._lock:
            if self._writer is writer:
                self._writer = None
        writer.close()

    def close(self) -> None:
        with self._lock:
            if self._writer is not None:
                self._writer.close()

    def _look_again(self) -> None:
        if time.monotonic() - self._looked_at < LOOK_AGAIN_SECONDS:
            return
        self._looked_at = time.monotonic()
        try:
            self._settings = self._reload()
        except HeadgateError as error:
            # Somebody is editing a profile: what is known holds until it can be read.
            _LOG.warning("the settings cannot be read again: %s", error.one_line)


def writer(request: Request) -> Generator[EventWriter]:
    """The writer of this app."""
    holder: EventWriterHolder = request.app.state.event_writers
    found = holder.get()
    try:
        yield found
    except UnavailableError:
        holder.forget(found)
        raise


def open_writers(
    app: FastAPI, settings: Settings, reload: Callable[[], Settings]
) -> Callable[[], None]:
    """Keep an event writer for this app; the function that is returned closes it."""
    app.state.event_writers = EventWriterHolder(settings, reload)
    return partial(close, app)


def close(app: FastAPI) -> None:
    """Let go of the connections; the app may not serve events afterwards."""
    app.state.event_writers.close()


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
    listed_faults = 0
    for index, read in enumerate(judged):
        result = _result(index, read, waiting)
        # All faults of the answer together: the events that have the others are still named.
        result.errors = result.errors[: max(0, MOST_FAULTS - listed_faults)]
        listed_faults += len(result.errors)
        results.append(result)
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
