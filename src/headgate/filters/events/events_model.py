"""What a producer posts: an event's header and the entities it is about."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Literal

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
    WithJsonSchema,
)
from pydantic.alias_generators import to_camel

from headgate.filters.filter_conditions import is_object

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
