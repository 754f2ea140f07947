"""The document of a filter: conditions on an event, the output topic, the consumer; its content and revision.

`canonical` is the content as one line of JSON, `revision_of` its SHA-256: the name of this content in the ops
store, the ledger, approvals and git. Fields from `status` on are reported by the service and no part of it.
"""

from __future__ import annotations

import hashlib
import json
import re
from datetime import datetime
from typing import Annotated, Any, Literal, TypeAlias, cast

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    model_validator,
)
from pydantic.alias_generators import to_camel

from headgate.declarations.names import SOURCE

Operator: TypeAlias = Literal[
    "equals",
    "in",
    "notIn",
    "greaterThan",
    "greaterThanOrEqual",
    "lessThan",
    "lessThanOrEqual",
    "between",
    "matches",
    "isNull",
    "isNotNull",
]
ValueType: TypeAlias = Literal["string", "number", "boolean", "timestamp"]
Op: TypeAlias = Literal["c", "u", "d", "r"]
Scalar: TypeAlias = StrictBool | StrictInt | StrictFloat | StrictStr

# What an event has, in the order in which it is written; the last is no part of what is sent on.
COLUMNS = (
    "id",
    "event_name",
    "event_type",
    "created_date",
    "saved_date",
    "header_data",
    "__op",
    "__table",
    "__ts_ms",
)
NUMBER_COLUMN = "__ts_ms"
JSON_COLUMN = "header_data"
NAME = r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
FIELD = r"[A-Za-z0-9_.\[\]]+"
TOPIC = r"[A-Za-z0-9._-]{1,249}"
MOST_NAME, MOST_TOPIC, MOST_FIELD, MOST_TEXT = 100, 249, 1_000, 100_000
MOST_VALUES, MOST_CONDITIONS, MOST_DEPTH = 1_000, 500, 10

_NameText = Annotated[StrictStr, Field(min_length=1, max_length=MOST_NAME, pattern=f"^{NAME}$")]
_Short = Annotated[StrictStr, Field(min_length=1, max_length=255)]
_ACCENTS = re.compile(r"[^a-z0-9]+")


class _Model(BaseModel):
    """Written in camel case, as the documents do; in Python by the usual names."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
    )


class Condition(_Model):
    """One question about one field; `value`, `values`, or `min` and `max`, as the operator asks."""

    field: Annotated[
        StrictStr,
        Field(
            pattern=f"^{FIELD}$",
            description="A column, or a path into header_data: header_data.items[0].price.",
        ),
    ]
    operator: Operator
    value: Scalar | None = None
    values: Annotated[tuple[Scalar, ...], Field(max_length=MOST_VALUES)] = ()
    min: Scalar | None = None
    max: Scalar | None = None
    value_type: Annotated[
        ValueType, Field(description="What the field's value is read as, and what is compared.")
    ] = "string"

    @model_validator(mode="before")
    @classmethod
    def _typed(cls, data: Any) -> Any:
        """The one column that is no text is a number without being called so."""
        given = cast("dict[str, Any]", data)
        if isinstance(data, dict) and given.get("field") == NUMBER_COLUMN:
            return {"valueType": "number", **given}
        return given


class AllOf(_Model):
    """Every one of them holds."""

    all: Annotated[tuple[AnyCondition, ...], Field(min_length=1)]


class AnyOf(_Model):
    """At least one of them holds."""

    any: Annotated[tuple[AnyCondition, ...], Field(min_length=1)]


class NotOf(_Model):
    """It does not hold; where it is NULL, neither does its opposite."""

    not_: Annotated[AnyCondition, Field(alias="not")]


AnyCondition: TypeAlias = Condition | AllOf | AnyOf | NotOf


class Filter(_Model):
    """The document. From `status` on it is what the service says of it, not what was declared."""

    id: Annotated[_NameText, Field(description="Made from the name where it is left out.")]
    name: Annotated[StrictStr, Field(min_length=1, max_length=200)]
    description: Annotated[StrictStr, Field(max_length=2_000)] = ""
    consumer_id: Annotated[_Short, Field(description="Who reads the output topic.")]
    output_topic: Annotated[
        StrictStr, Field(min_length=1, max_length=MOST_TOPIC, pattern=f"^{NAME}$")
    ]
    conditions: Annotated[tuple[AnyCondition, ...], Field(min_length=1)]
    condition_logic: Annotated[
        Literal["AND", "OR"], Field(description="How the conditions are joined.")
    ] = "AND"
    enabled: StrictBool
    ops: Annotated[
        tuple[Op, ...],
        Field(
            min_length=1, description="Which changes pass: create, update, delete, snapshot read."
        ),
    ] = ("c",)
    backfill: Annotated[
        Literal["none", "earliest"],
        Field(description="Whether events from before the deployment are sent too."),
    ] = "none"
    source: Annotated[StrictStr, Field(pattern=f"^{TOPIC}$")] = SOURCE
    status: StrictStr | None = None
    version: Annotated[StrictInt, Field(ge=1)] | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    approved_by: StrictStr | None = None
    approved_at: datetime | None = None
    deployed_at: datetime | None = None
    deployment_error: StrictStr | None = None
    flink_statement_ids: tuple[StrictStr, ...] | None = None


# What the service says of a filter: read, and no part of its content.
STATUS_FIELDS = (
    "status",
    "version",
    "createdAt",
    "updatedAt",
    "approvedBy",
    "approvedAt",
    "deployedAt",
    "deploymentError",
    "flinkStatementIds",
)


def content(declared: Filter) -> dict[str, Any]:
    """What was declared, with defaults written out and without what the service says of it."""
    plain = declared.model_dump(
        mode="json", by_alias=True, exclude={"conditions", *_snake(STATUS_FIELDS)}
    )
    made = {name: plain[name] for name in plain}
    made["ops"] = sorted(set(declared.ops), key="crud".index)
    made["conditions"] = [condition_content(item) for item in declared.conditions]
    return made


def canonical(declared: Filter) -> str:
    """The content as one line of JSON: equal for equal content."""
    return json.dumps(content(declared), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def revision_of(declared: Filter) -> str:
    """The one name of this content, in the ops store, the ledger, the approvals and git."""
    return hashlib.sha256(canonical(declared).encode()).hexdigest()


def condition_content(item: AnyCondition) -> dict[str, Any]:
    """A condition as it is written, without what its operator does not ask for."""
    match item:
        case AllOf():
            return {"all": [condition_content(part) for part in item.all]}
        case AnyOf():
            return {"any": [condition_content(part) for part in item.any]}
        case NotOf():
            return {"not": condition_content(item.not_)}
        case Condition():
            plain = item.model_dump(mode="json", by_alias=True, exclude_none=True)
            return {key: plain[key] for key in plain if plain[key] != []}


def id_from_name(name: str) -> str:
    """`Service Events for Dealer 001` as `service-events-for-dealer-001`."""
    return _ACCENTS.sub("-", name.lower()).strip("-")[:MOST_NAME].strip("-")


def _snake(names: tuple[str, ...]) -> set[str]:
    return {re.sub(r"(?<=[a-z])([A-Z])", r"_\1", name).lower() for name in names}
