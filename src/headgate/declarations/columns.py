"""Columns of declared records: their names, their types on the way from topic to silver, reserved names.

`Records` is what a reader of JSON must know of them; a dataset declares it, and so does a source of a rule set.
"""

from __future__ import annotations

import re
from typing import Annotated, Protocol

from pydantic import BeforeValidator, ConfigDict, Field, StrictBool, StrictStr, WithJsonSchema
from pydantic.dataclasses import dataclass

from headgate.declarations.document import Text
from headgate.declarations.errors import Refusal
from headgate.declarations.types import SqlType, java_pattern, parse_type

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
# What silver's views add: a silver column cannot have these names either.
SILVER_OWN_NAMES = frozenset({"outcome", "_rank", "_rows"})


def _type(value: object) -> object:
    if isinstance(value, str):
        return parse_type(value)
    if isinstance(value, SqlType):
        return value
    raise Refusal("a type is written as text", "Write for example STRING or DECIMAL(10, 2).")


def _pattern(value: object) -> object:
    return java_pattern(value) if isinstance(value, str) else value


TypeText = Annotated[
    SqlType,
    BeforeValidator(_type),
    WithJsonSchema({"type": "string", "examples": ["STRING", "TIMESTAMP(3)", "DECIMAL(10, 2)"]}),
]
TimePattern = Annotated[Text, BeforeValidator(_pattern)]
STRICT = ConfigDict(extra="forbid", str_strip_whitespace=True)


@dataclass(frozen=True, config=STRICT)
class Column:
    """One field of the event and what becomes of it on its way."""

    name: Annotated[Text, Field(description="The field's name in the event, case and all.")]
    kafka_type: Annotated[TypeText, Field(description="Its type in the JSON of the topic.")]
    bronze_type: Annotated[TypeText, Field(description="Its type in bronze.")]
    silver_name: Annotated[Text, Field(description="Its name in silver.")]
    silver_type: Annotated[TypeText, Field(description="Its type in silver.")]
    is_event_ts: Annotated[StrictBool, Field(description="Whether it is the event time.")] = False
    comment: Annotated[StrictStr | None, Field(description="A word for the reader.")] = None


_ODD = re.compile(r"[`.\"]|\$\{")


def is_odd_name(name: str) -> bool:
    """Whether tables and SQL text could not carry the name as it is."""
    return bool(_ODD.search(name)) or not name.isprintable()


class Records(Protocol):
    """The declared fields, how their times are written, and whether other fields may stand beside."""

    @property
    def columns(self) -> tuple[Column, ...]: ...

    @property
    def ts_format(self) -> str: ...

    @property
    def keeps_drift(self) -> bool: ...
