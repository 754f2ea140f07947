"""A value at another type, None where it has no counterpart there."""

from __future__ import annotations

from decimal import Decimal
from math import ceil, floor, isfinite, isnan
from typing import TypeAlias

from headgate.conditions.evaluator.calendar import DAY, day_of, time_text
from headgate.conditions.evaluator.numbers import RANGES, rescaled, whole
from headgate.conditions.evaluator.reading import read_text
from headgate.conditions.evaluator.twin_values import Held
from headgate.declarations.spec_types import SqlType

Number: TypeAlias = int | float | Decimal


def cast(value: Held, source: SqlType, target: SqlType) -> Held:
    """The value of type `source` at type `target`."""
    if value is None or source.name == target.name != "DECIMAL":
        return value
    if isinstance(value, str):
        return read_text(value, target)
    if target.name == "STRING":
        return _text(value, source)
    if source.is_time or isinstance(value, bool):
        return _moment(int(value), source, target)
    return _number(value, target)


def _text(value: bool | int | float | Decimal, source: SqlType) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return f"{value:f}"
    if source.name == "DATE":
        return str(day_of(int(value)))
    return time_text(int(value)) if source.is_time else str(value)


def _moment(value: int, source: SqlType, target: SqlType) -> int:
    return value // DAY if source.is_time and target.name == "DATE" else value


def _number(value: Number, target: SqlType) -> Held:
    match target.name:
        case "BOOLEAN":
            return value != 0
        case "DOUBLE" | "FLOAT":
            return float(value)
        case "DECIMAL":
            return _decimal(value, target)
        case _:
            return _cut(value, target) if isinstance(value, float) else whole(int(value), target)


def _decimal(value: Number, target: SqlType) -> Decimal | None:
    if isinstance(value, float):
        # By way of its shortest text: 0.1 is 0.1, not what is nearest to it in binary.
        return rescaled(Decimal(repr(value)), target) if isfinite(value) else None
    return rescaled(Decimal(value), target)


def _cut(value: float, target: SqlType) -> int | None:
    least, most = RANGES[target.name]
    if isnan(value):
        return None
    if not isfinite(value) or floor(value) > float(most) or ceil(value) < float(least):
        return None
    return max(least, min(most, int(value)))
