"""Reads a posted event: the event, or everything that is wrong with it, each with its place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import cast

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from headgate.declarations.json_pointer import json_pointer
from headgate.declarations.refusal import suggestion
from headgate.errors import DeclarationError, Fault
from headgate.filters.document_text import MOST_FAULTS
from headgate.filters.events.events_model import (
    MOST_ENTITIES,
    SERVICE_DONE,
    EntityHeader,
    Event,
    EventHeader,
    ServiceRecord,
)
from headgate.filters.events.exact_json import REPEATED, Json, Steps, text_of, unkept
from headgate.filters.events.header_data import header_data

# Pydantic puts the kind of an entity between its number and its field.
KIND_AT = 2
WORDS = {
    "missing": ("is missing", "Write it."),
    "string_type": ("must be text", "Put it in quotes."),
    "int_type": ("must be a whole number", "Write it without quotes."),
    "timezone_aware": ("names no time zone", "Add Z, as in 2025-01-15T10:00:00Z."),
}
TIMES = "Write it as 2025-01-15T10:00:00Z."


@dataclass(frozen=True)
class Read:
    """An event, and the texts that are kept of it: whole, its header, each entity."""

    event: Event
    text: str
    header_data: str
    entities: tuple[str, ...]


def read_event(data: Json) -> Read:
    """The event in parsed JSON; a DeclarationError has all faults with JSON pointers."""
    faults = list(islice(faults_of(data), MOST_FAULTS + 1))
    if len(faults) > MOST_FAULTS:
        what = f"there are more faults; the first {MOST_FAULTS} are listed"
        faults[MOST_FAULTS:] = [_fault((), what, "Correct these first.")]
    if faults:
        raise DeclarationError(faults)
    event, posted = Event.model_validate(data), cast("dict[str, Json]", data)
    entities = tuple(map(text_of, cast("list[Json]", posted["entities"])))
    return Read(event, text_of(data), header_data(event, posted), entities)


def faults_of(data: Json) -> Iterator[Fault]:
    """What is wrong with an event, as it is found: a caller may stop after a number of faults."""
    is_refused = False
    for steps, why in unkept(data):
        is_refused = True
        yield _fault(steps, why, "Keep one." if why == REPEATED else "Take it out.")
    entities = cast("dict[str, Json]", data).get("entities") if isinstance(data, dict) else None
    if isinstance(entities, list) and len(cast("list[Json]", entities)) > MOST_ENTITIES:
        # Before each of them is judged: there may be as many as a body has room for.
        what = f"has {len(cast('list[Json]', entities)):,} entities"
        yield _fault(("entities",), what, f"Keep to {MOST_ENTITIES}; post several events.")
        return
    if is_refused:
        return
    try:
        event = Event.model_validate(data)
    except ValidationError as error:
        details = error.errors(include_url=False)
        yield from (_of_pydantic(detail) for detail in details if not _is_empty_in_name(detail))
    else:
        yield from _contradictions(event)


def _contradictions(event: Event) -> Iterator[Fault]:
    """What is wrong between parts that are right by themselves."""
    services = [n for n, entity in enumerate(event.entities) if isinstance(entity, ServiceRecord)]
    for number in services[1:]:
        yield _fault(("entities", number), "is a second ServiceRecord", "Post it as its own event.")
    if event.event_header.event_type == SERVICE_DONE and not services:
        what = f"has no ServiceRecord, but the event is {SERVICE_DONE}"
        yield _fault(("entities",), what, "Add the service that was done.")
    for number, entity in enumerate(event.entities):
        if entity.id != entity.entity_header.entity_id:
            what = "is not the entityId of its entityHeader"
            yield _fault(("entities", number, "id"), what, "Write the same id in both places.")


def _is_empty_in_name(detail: ErrorDetails) -> bool:
    """Whether a list is called too short only because its items have faults."""
    return detail["type"] == "too_short" and bool(detail["input"])


def _of_pydantic(detail: ErrorDetails) -> Fault:
    steps = _steps(detail["loc"])
    kind = detail["type"]
    if kind == "extra_forbidden":
        fix = suggestion(str(steps[-1]), _known(steps[:-1]), "fields")
        return _fault(steps, "is no field here", fix)
    if kind in WORDS:
        return _fault(steps, *WORDS[kind])
    words = detail["msg"].removeprefix("Value error, ").removeprefix("Input ")
    what = words[:1].lower() + words[1:]
    return _fault(steps, what, TIMES if "time" in kind else "Correct it.")


def _steps(place: Sequence[str | int]) -> Steps:
    if place[:1] == ("entities",):
        return (*place[:KIND_AT], *place[KIND_AT + 1 :])
    return tuple(place)


def _known(steps: Steps) -> list[str]:
    """The fields that may stand there."""
    at: dict[str, type[BaseModel]] = {"eventHeader": EventHeader, "entityHeader": EntityHeader}
    last = steps[-1] if steps else ""
    model = ServiceRecord if isinstance(last, int) else at.get(last, Event)
    return [field.alias or name for name, field in model.model_fields.items()]


def _fault(steps: Steps, what: str, fix: str) -> Fault:
    return Fault("", None, json_pointer(steps), what, fix)
