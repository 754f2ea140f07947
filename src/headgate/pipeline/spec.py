"""The dataset manifest as a model: topic, columns, keys and quality filters of one stream."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, TypeAdapter
from pydantic.dataclasses import dataclass

from headgate.declarations.columns import RECORD_TIME, STRICT, TYPE_KEYS, Column, TimePattern
from headgate.declarations.document import Text
from headgate.declarations.types import TIMESTAMP_LTZ, SqlType

MANIFEST_VERSION = 1
Contract = Literal["evolve", "freeze", "quarantine"]


@dataclass(frozen=True, config=STRICT)
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
