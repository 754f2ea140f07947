"""A dataset manifest: topic, columns, keys and quality filters of one stream."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictStr,
    StringConstraints,
    TypeAdapter,
    WithJsonSchema,
)
from pydantic.dataclasses import dataclass

from headgate.spec.patterns import java_pattern
from headgate.spec.refusal import Refusal
from headgate.spec.types import TIMESTAMP_LTZ, SqlType, parse_type

MANIFEST_VERSION = 1
TYPE_KEYS = ("kafka_type", "bronze_type", "silver_type")
# Stands for the event time of events that have none: when the record came to the topic.
RECORD_TIME = "kafka_timestamp"
RESERVED_COLUMNS = (
    "ingestion_ts",
    "kafka_topic",
    "kafka_partition",
    "kafka_offset",
    RECORD_TIME,
)


def _type(value: object) -> object:
    if isinstance(value, str):
        return parse_type(value)
    if isinstance(value, SqlType):
        return value
    raise Refusal("a type is written as text", "Write for example STRING or DECIMAL(10, 2).")


def _pattern(value: object) -> object:
    return java_pattern(value) if isinstance(value, str) else value


Contract = Literal["evolve", "freeze", "quarantine"]
Text = Annotated[StrictStr, StringConstraints(min_length=1)]
TypeText = Annotated[
    SqlType,
    BeforeValidator(_type),
    WithJsonSchema({"type": "string", "examples": ["STRING", "TIMESTAMP(3)", "DECIMAL(10, 2)"]}),
]
TimePattern = Annotated[Text, BeforeValidator(_pattern)]
_STRICT = ConfigDict(extra="forbid", str_strip_whitespace=True)


@dataclass(frozen=True, config=_STRICT)
class Column:
    """One field of the event and what becomes of it on its way."""

    name: Annotated[Text, Field(description="The field's name in the event, case and all.")]
    kafka_type: Annotated[TypeText, Field(description="Its type in the JSON of the topic.")]
    bronze_type: Annotated[TypeText, Field(description="Its type in bronze.")]
    silver_name: Annotated[Text, Field(description="Its name in silver.")]
    silver_type: Annotated[TypeText, Field(description="Its type in silver.")]
    is_event_ts: Annotated[StrictBool, Field(description="Whether it is the event time.")] = False
    comment: Annotated[StrictStr | None, Field(description="A word for the reader.")] = None


@dataclass(frozen=True, config=_STRICT)
class Dataset:
    """Makes bronze, silver and a dbt staging model."""

    name: Annotated[Text, Field(description="The dataset's name, equal to its folder's.")]
    topic: Annotated[Text, Field(description="The topic that is read; may be ${TOPIC}.")]
    dlq_topic: Annotated[Text, Field(description="The dead-letter topic; may be ${DLQ_TOPIC}.")]
    bronze_table: Annotated[Text, Field(description="Raw rows, as schema.table.")]
    silver_table: Annotated[Text, Field(description="Clean rows, as schema.table.")]
    event_ts_col: Annotated[
        Text,
        Field(description="The column that is the event time, or kafka_timestamp if none is."),
    ]
    ts_format: Annotated[TimePattern, Field(description="Java pattern of times in the event.")]
    partition_date_col: Annotated[Text, Field(description="Silver's DATE partition column.")]
    partition_date_expr: Annotated[Text, Field(description="That column from bronze columns.")]
    columns: Annotated[
        tuple[Column, ...],
        Field(min_length=1, description="The event's fields, in order."),
    ]
    dedup_key: Annotated[
        tuple[Text, ...],
        Field(min_length=1, description="Columns that tell two events apart."),
    ]
    quality_filters: Annotated[
        tuple[Text, ...],
        Field(min_length=1, description="Conditions that silver rows fulfil."),
    ]
    surrogate_key_fields: Annotated[
        tuple[Text, ...],
        Field(min_length=1, description="Columns the surrogate key is made of."),
    ]
    surrogate_key_name: Annotated[
        str, StringConstraints(), Field(description="Default: <name>_id.")
    ] = ""
    key_field: Annotated[Text | None, Field(description="The column that is the message key.")] = (
        None
    )
    contract: Annotated[
        Contract,
        Field(
            description="What becomes of unknown fields: evolve makes them bronze columns, freeze "
            "keeps them in _extra, quarantine refuses the record."
        ),
    ] = "evolve"
    manifest_version: Annotated[int, Field(strict=True, ge=1, le=MANIFEST_VERSION)] = 1

    def __post_init__(self) -> None:
        if not self.surrogate_key_name:
            object.__setattr__(self, "surrogate_key_name", f"{self.name}_id")

    @property
    def keeps_drift(self) -> bool:
        """Whether a record that deviates from the declaration still becomes a row."""
        return self.contract != "quarantine"

    def column(self, name: str) -> Column:
        """The column of that name; the manifest's own references always have one."""
        return next(column for column in self.columns if column.name == name)

    @property
    def event_column(self) -> Column | None:
        """The column that is the event time; None when it is the record's own time."""
        return None if self.event_ts_col == RECORD_TIME else self.column(self.event_ts_col)

    @property
    def bronze_types(self) -> dict[str, SqlType]:
        """What a condition over bronze rows may refer to."""
        declared = {column.name: column.bronze_type for column in self.columns}
        return {**declared, RECORD_TIME: TIMESTAMP_LTZ}


def as_plain(dataset: Dataset) -> dict[str, Any]:
    """The manifest as plain values, such as `from_plain` takes."""
    values = asdict(dataset)
    for column, plain in zip(dataset.columns, values["columns"], strict=True):
        plain |= {key: str(getattr(column, key)) for key in TYPE_KEYS}
    return values


def from_plain(values: Mapping[str, Any]) -> Dataset:
    return TypeAdapter(Dataset).validate_python(values)
