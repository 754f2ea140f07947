"""Value types of a rule set's fields: limits, constants, durations and column types, validated as they are read."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer, StringConstraints, WithJsonSchema
from pydantic.config import JsonDict

from headgate.declarations.errors import Refusal
from headgate.declarations.types import SqlType, duration, in_words, parse_type


def _limit(value: object) -> object:
    if isinstance(value, bool | list | dict):
        raise Refusal("a limit is a number, or the text of a date or time", "Write for example 5.")
    return _exact(value)


def _constant(value: object) -> object:
    if value is None or isinstance(value, list | dict):
        raise Refusal("a value is text, a number, true or false", "Leave it out.")
    return _exact(value)


def _exact(value: object) -> object:
    """Half of a pair of UTF-16 is no character: no record and no SQL can have it."""
    if isinstance(value, str) and any("\ud800" <= letter <= "\udfff" for letter in value):
        raise Refusal(f"{value!r} has half of a character", "Write the whole character.")
    return value


def _number(value: object) -> object:
    if isinstance(value, str) and value[-1:].isdigit() and _is_beyond_double(value):
        raise Refusal("the number is too large", "Write a smaller one, or none.")
    if isinstance(value, bool | str | list | dict):
        raise Refusal("this must be a number", "Write the number without quotes.")
    return value


def _is_beyond_double(text: str) -> bool:
    """Whether a number as 1e400 is meant, which a declared file's reader leaves as text."""
    try:
        return math.isinf(float(text))
    except ValueError:
        return False


def _type(value: object) -> SqlType:
    if isinstance(value, SqlType):
        return value
    if not isinstance(value, str):
        raise Refusal("a type is written as text", "Write for example STRING or TIMESTAMP(3).")
    found = parse_type(value)
    if found.name == "JSON":
        raise Refusal("rules see no JSON", "Write STRING: the text of the field.")
    # Text that ends in Z would be NULL as a time without zone, so all times here are UTC.
    return SqlType("TIMESTAMP_LTZ", found.precision) if found.is_time else found


def written(length: timedelta) -> JsonDict:
    """A default as a person would write it, for the schema."""
    return {"default": in_words(length)}


Limit = Annotated[int | float | str | None, BeforeValidator(_limit)]
# Blanks at the ends of a value are part of it.
Exact = Annotated[str, StringConstraints(strip_whitespace=False), BeforeValidator(_exact)]
Constant = Annotated[bool | int | float | Exact, BeforeValidator(_constant)]
Number = Annotated[float | None, BeforeValidator(_number)]
Duration = Annotated[
    timedelta,
    BeforeValidator(duration),
    PlainSerializer(in_words),
    WithJsonSchema({"type": "string", "examples": ["10 SECONDS", "5 MINUTES"]}),
]
ColumnType = Annotated[
    SqlType,
    BeforeValidator(_type),
    PlainSerializer(str),
    WithJsonSchema({"type": "string", "examples": ["STRING", "TIMESTAMP(3)", "DECIMAL(10, 2)"]}),
]
