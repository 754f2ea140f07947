"""Cast a value to another type by Spark's rules, texts included; None where it has no counterpart."""

from __future__ import annotations

import re
from decimal import Decimal
from math import ceil, floor, inf, isfinite, isnan, nan
from typing import TypeAlias

from headgate.conditions.evaluator.values import (
    DAY,
    RANGES,
    SECOND,
    Day,
    Held,
    day_of,
    days_of,
    rescaled,
    time_text,
    whole,
)
from headgate.conditions.type_coercion import FORMS, NUMBER, TextForm
from headgate.declarations.types import SqlType

# Left aside at both ends: by Spark's own reading of whole numbers, booleans and dates, and by Java's
# reading of the rest.
_BLANKS = "".join(map(chr, (*range(0x21), 0x7F)))
_JAVA_BLANKS = "".join(map(chr, range(0x21)))
_TRUE = frozenset({"t", "true", "y", "yes", "1"})
_FALSE = frozenset({"f", "false", "n", "no", "0"})
_INTEGER = re.compile(r"[+-]?[0-9]+")
_REAL = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[fFdD]?", re.ASCII)
_HEXADECIMAL = re.compile(
    r"([+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?"
)
_NAMED = {
    **dict.fromkeys(("inf", "+inf", "infinity", "+infinity"), inf),
    **dict.fromkeys(("-inf", "-infinity"), -inf),
    "nan": nan,
}
_SIGNED_NAN = frozenset({"+NaN", "-NaN"})
_MOST_OFFSET = 18 * 60
_PARTS = re.compile(
    r"([0-9]+)-([0-9]+)-([0-9]+)(?:.([0-9]+):([0-9]+)(?::([0-9]+)(?:\.([0-9]+))?(Z|[+-].*)?)?)?"
)
_DATE = re.compile(r"([+-]?)([0-9]{4,7})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T].*)?)?)?", re.DOTALL)


def read_text(text: str, target: SqlType) -> Held:
    """The value of that type that the text says."""
    match target.name:
        case "BOOLEAN":
            return _boolean(text.strip(_BLANKS))
        case "INT" | "BIGINT":
            plain = text.strip(_BLANKS)
            return whole(int(plain), target) if _INTEGER.fullmatch(plain) else None
        case "DOUBLE":
            return _real(text.strip(_JAVA_BLANKS))
        case "DECIMAL":
            return _decimal(text, target)
        case "DATE":
            return _date(text.strip(_BLANKS))
        case _:
            return _time(text, FORMS[target.name])


def _boolean(text: str) -> bool | None:
    folded = text.lower()
    return True if folded in _TRUE else False if folded in _FALSE else None


def _real(text: str) -> float | None:
    found = _REAL.fullmatch(text)
    if found:
        return float(found.group(1))
    found = _HEXADECIMAL.fullmatch(text)
    if found:
        return _from_hexadecimal(found.group(1))
    return nan if text in _SIGNED_NAN else _NAMED.get(text.lower())


def _from_hexadecimal(text: str) -> float:
    try:
        return float.fromhex(text)
    except OverflowError:
        return -inf if text.startswith("-") else inf


def _decimal(text: str, target: SqlType) -> Decimal | None:
    return rescaled(Decimal(text.strip(" ")), target) if NUMBER.matches(text) else None


def _date(text: str) -> int | None:
    found = _DATE.fullmatch(text)
    if found is None:
        return None
    sign, year, month, day = found.groups()
    return days_of(Day(int(f"{sign}{year}"), int(month or 1), int(day or 1)))


def _time(text: str, form: TextForm) -> int | None:
    if not form.matches(text):
        return None
    found = _PARTS.fullmatch(text.strip(" "))
    if found is None:
        return None
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    days = days_of(Day(int(year), int(month), int(day)))
    hours, minutes, seconds = (int(part or 0) for part in (hour, minute, second))
    offset = _offset(zone)
    if days is None or hours > 23 or minutes > 59 or seconds > 59 or offset is None:
        return None
    of_day = ((hours * 60 + minutes - offset) * 60 + seconds) * SECOND
    return days * DAY + of_day + int((fraction or "")[:6].ljust(6, "0"))


def _offset(zone: str | None) -> int | None:
    """In minutes; None beyond what is a zone."""
    if zone is None or zone == "Z":
        return 0
    hours, minutes = int(zone[1:3]), int(zone[4:6])
    total = hours * 60 + minutes
    if minutes > 59 or total > _MOST_OFFSET:
        return None
    return -total if zone[0] == "-" else total


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
            return _cast_to_decimal(value, target)
        case _:
            return _cut(value, target) if isinstance(value, float) else whole(int(value), target)


def _cast_to_decimal(value: Number, target: SqlType) -> Decimal | None:
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
