"""The values of a row as the twin holds them, and back."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from struct import pack, unpack
from typing import TypeAlias

from headgate.conditions.evaluator.calendar import as_date, as_time, days_since, micros_since
from headgate.conditions.evaluator.numbers import rescaled
from headgate.declarations.spec_types import SqlType

Value: TypeAlias = None | bool | int | float | Decimal | str | date | datetime
# Dates are days since 1970, times microseconds since then.
Known: TypeAlias = bool | int | float | Decimal | str
Held: TypeAlias = Known | None


def held(value: Value, kind: SqlType) -> Held:
    """A value of that type as the twin holds it; dates and times may be given as whole numbers."""
    match value:
        case datetime():
            return micros_since(value)
        case date():
            return days_since(value)
        case bool() | str() | None:
            return value
        case _ if kind.name == "DOUBLE":
            return float(value)
        case _ if kind.name == "FLOAT":
            return narrowed(float(value))
        case int() | Decimal() if kind.name == "DECIMAL":
            return rescaled(Decimal(value), kind)
        case _:
            return value


def released(value: Held, kind: SqlType) -> Value:
    """The value as Python has it; a date or time beyond the year 9999 stays a whole number."""
    if not isinstance(value, int):
        return value
    if kind.name == "DATE":
        return as_date(value)
    return as_time(value, zoned=kind.name == "TIMESTAMP_LTZ") if kind.is_time else value


def narrowed(value: float) -> float:
    """The nearest FLOAT."""
    try:
        return unpack("f", pack("f", value))[0]
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
