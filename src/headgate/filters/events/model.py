"""An event as a producer posts it: header and entities, their JSON Schemas, all faults at once, and `header_data`.

`header_data` is the header with the service fields copied into it: filters see nothing but the header's row, and
without the copy the documents' own filter on `dealerId` would match nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import orjson
from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    JsonValue,
    Tag,
    ValidationError,
    WithJsonSchema,
)
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails

from headgate.declarations.errors import MOST_FAULTS, json_pointer, suggestion
from headgate.errors import DeclarationError, Fault
from headgate.filters.events.exact_json import REPEATED, Json, Steps, text_of, unkept
from headgate.filters.validation import is_object

EventType = Literal["CarCreated", "LoanCreated", "LoanPaymentSubmitted", "CarServiceDone"]
EntityType = Literal["Car", "Loan", "LoanPayment", "ServiceRecord", "PartUsed", "ServiceDetails"]
SERVICE_DONE: EventType = "CarServiceDone"
SERVICE: EntityType = "ServiceRecord"
CAR: EntityType = "Car"
OTHER = "other"
MOST_ENTITIES = 100
LONGEST_ID = 64
DIGITS = 18
MOST_OFFSET = timedelta(hours=15, minutes=59)


def _number(value: object) -> object:
    """A number as JSON has them; text that looks like one is refused."""
    if isinstance(value, bool) or not isinstance(value, (int, Decimal, float)):
        raise ValueError("must be a number")
    return value


def _time(value: object) -> object:
    if not isinstance(value, str):
        raise ValueError("must be a time such as 2025-01-15T10:00:00Z")
    return value


def _kept_by_postgresql(value: datetime) -> datetime:
    """The time, if PostgreSQL takes its offset and has a place for its moment in UTC."""
    if abs(value.utcoffset() or timedelta()) > MOST_OFFSET:
        raise ValueError("has an offset beyond 15:59 from UTC")
    try:
        value.astimezone(UTC)
    except OverflowError:
        raise ValueError("is not between the years 1 and 9999 in UTC") from None
    return value


# For the JSON Schemas, where the two kinds of entity must exclude each other.
IS_SERVICE: dict[str, JsonValue] = {
    "required": ["entityHeader"],
    "properties": {
        "entityHeader": {
            "required": ["entityType"],
            "properties": {"entityType": {"const": SERVICE}},
        }
    },
}
# The documents' own samples are no UUIDs, so any short text will do.
Id = Annotated[str, Field(min_length=1, max_length=LONGEST_ID, strict=True)]
Name = Annotated[str, Field(min_length=1, max_length=200, strict=True)]
Words = Annotated[str, Field(max_length=2_000, strict=True)]
Count = Annotated[int, Field(ge=0, le=2**53, strict=True)]
Time = Annotated[
    AwareDatetime,
    BeforeValidator(_time),
    AfterValidator(_kept_by_postgresql),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
Amount = Annotated[
    Decimal,
    BeforeValidator(_number),
    Field(max_digits=DIGITS, decimal_places=6),
    WithJsonSchema({"type": "number"}),
]


class Part(BaseModel):
    """A part of an event; fields that are not declared are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel)


class EventHeader(Part):
    """Which event this is; `uuid` is any text that no other event has."""

    uuid: Id
    event_name: Name
    event_type: EventType
    created_date: Time
    saved_date: Time


class EntityHeader(Part):
    """Which entity this is, and how new."""

    entity_id: Id
    entity_type: EntityType
    created_at: Time
    updated_at: Time


class ServiceRecord(Part):
    """A service that was done; its fields are copied into the event's `header_data`."""

    model_config = ConfigDict(json_schema_extra={"allOf": [IS_SERVICE]})

    entity_header: EntityHeader
    id: Id
    car_id: Id
    service_date: Time
    amount_paid: Amount
    dealer_id: Id
    dealer_name: Name
    mileage_at_service: Count
    description: Words
    vin: Id | None = None
    service_type: Name | None = None


class Entity(Part):
    """Any other entity: its header, its id, and fields of its own."""

    model_config = ConfigDict(extra="allow", json_schema_extra={"not": IS_SERVICE})

    entity_header: EntityHeader
    id: Id


def _kind(value: object) -> str:
    """By its type; whatever is malformed is judged as any other entity."""
    if isinstance(value, (ServiceRecord, Entity)):
        return value.entity_header.entity_type
    head: object = value.get("entityHeader") if is_object(value) else None
    kind: object = head.get("entityType") if is_object(head) else None
    return SERVICE if kind == SERVICE else OTHER


AnyEntity = Annotated[
    Annotated[ServiceRecord, Tag(SERVICE)] | Annotated[Entity, Tag(OTHER)], Discriminator(_kind)
]


class Event(Part):
    """One event as it is posted."""

    event_header: EventHeader
    entities: Annotated[tuple[AnyEntity, ...], Field(min_length=1, max_length=MOST_ENTITIES)]

    @property
    def id(self) -> str:
        return self.event_header.uuid

    @property
    def service(self) -> ServiceRecord | None:
        """The service that was done, if this event is about one."""
        found = (entity for entity in self.entities if isinstance(entity, ServiceRecord))
        return next(found, None)


FOLDER = Path("schemas/event")
SAMPLES = FOLDER / "samples"
DRAFT = "https://json-schema.org/draft/2020-12/schema"
FILES: dict[str, type[BaseModel]] = {
    "event.schema.json": Event,
    "event-header.schema.json": EventHeader,
    "entity-header.schema.json": EntityHeader,
    "service-record.schema.json": ServiceRecord,
    "entity.schema.json": Entity,
}


def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """The schema of what is posted."""
    return {"$schema": DRAFT} | model.model_json_schema(by_alias=True, mode="validation")


def schemas() -> Iterator[tuple[Path, bytes]]:
    """Each file with its content, the same bytes every time."""
    for name, model in FILES.items():
        yield FOLDER / name, orjson.dumps(schema_of(model), option=orjson.OPT_INDENT_2) + b"\n"


SERVICE_FIELDS = (
    *("carId", "serviceDate", "amountPaid", "dealerId", "dealerName", "mileageAtService"),
    *("vin", "serviceType"),
)


def header_data(event: Event, posted: Mapping[str, Json]) -> str:
    """The JSON text of `header_data`, every value as it was posted."""
    head = cast("dict[str, Json]", posted["eventHeader"])
    return text_of({**head, **_service(event, cast("list[Json]", posted["entities"]))})


def _service(event: Event, entities: list[Json]) -> dict[str, Json]:
    if event.service is None:
        return {}
    posted = cast("dict[str, Json]", entities[event.entities.index(event.service)])
    found = {name: posted[name] for name in SERVICE_FIELDS if posted.get(name) is not None}
    vin = _vin_of(event, event.service.car_id)
    return {**({"vin": vin} if vin else {}), **found}


def _vin_of(event: Event, car_id: str) -> str | None:
    """A service names its car by id; the VIN stands on the car, when the event brings it along."""
    for entity in event.entities:
        if entity.entity_header.entity_type == CAR and entity.id == car_id:
            found = (entity.model_extra or {}).get("vin")
            return found if isinstance(found, str) and len(found) <= LONGEST_ID else None
    return None


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
