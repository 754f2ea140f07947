"""Parses one record in Python exactly as the SQL of a source does: its fields, their types, its key by a path.

For services that answer a record beside the job, such as the hasher: if one of them accepted a record that the
job refuses, its answer would look like a row that the other side lacks.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, cast

from headgate.conditions.literals import spark_identifier
from headgate.conditions.type_coercion import EXPONENT_DIGITS
from headgate.declarations.types import SqlType

_STEP = re.compile(
    r"(?P<name>[A-Za-z_]\w*)(?:\[(?:(?P<index>\d+)|(?P<field>[A-Za-z_]\w*)='(?P<text>[^'\[\]]*)')\])?"
)


@dataclass(frozen=True)
class Step:
    """A field; of a list the item at an index, or those items of which a field is a text."""

    name: str
    index: int | None = None
    field: str | None = None
    text: str = ""

    @property
    def is_list(self) -> bool:
        return self.index is not None or self.field is not None


def read_path(path: str) -> tuple[Step, ...]:
    """The steps of a path that the rule set's check has let pass."""
    return tuple(
        Step(
            found["name"],
            int(found["index"]) if found["index"] else None,
            found["field"],
            found["text"] or "",
        )
        for found in _STEP.finditer(path)
    )


def root_schema(path: str) -> str:
    """The field in which the key stands, as a column with what the path needs of it."""
    return _schema(read_path(path))


def _schema(steps: tuple[Step, ...]) -> str:
    """Only the fields on the path, and those that choose among a list's items."""
    step, rest = steps[0], steps[1:]
    inner = _type(step, rest)
    return f"{spark_identifier(step.name)} {inner}"


def _type(step: Step, rest: tuple[Step, ...]) -> str:
    fields = [f"{spark_identifier(step.field)}: STRING"] if step.field else []
    if rest and rest[0].name != step.field:
        fields.append(f"{spark_identifier(rest[0].name)}: {_type(rest[0], rest[1:])}")
    item = f"STRUCT<{', '.join(fields)}>" if fields else "STRING"
    return f"ARRAY<{item}>" if step.is_list else item


# With T or a blank, to the microsecond, in UTC unless a zone is given; `_TIME` is the same in Python.
TIMES = "yyyy-MM-dd['T'][' ']HH:mm:ss[.SSSSSS][XXX]"
_TIME = re.compile(
    r"([0-9]{4}|-[0-9]{4,6}|\+[0-9]{5,6})-([0-9]{2})-([0-9]{2})[Tt]? ?"
    r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,6}))?(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))?"
)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
# Beyond these years the engine has no microseconds.
_LAST_YEAR = 290_000
_WIDEST_ZONE = timedelta(hours=18)
_WHOLE = re.compile(r"-?(?:0|[1-9][0-9]*)")
_BITS = {"INT": 32, "BIGINT": 64}
_LARGEST_FLOAT = 3.4028235677973366e38


class Number(str):
    """A number of a record, as it is written there."""

    __slots__ = ()


def sound_fields(value: bytes) -> Mapping[str, Any] | None:
    """The fields of a record that is one JSON object and nothing else; None when it is not."""
    try:
        text = value.decode()
        data = json.loads(
            text,
            object_pairs_hook=_fields,
            parse_int=_number,
            parse_float=_number,
            parse_constant=_refused,
        )
        if "\\u" in text:
            json.dumps(data, ensure_ascii=False).encode()  # not of half a surrogate pair
    except (ValueError, RecursionError):
        return None
    return cast("Mapping[str, Any]", data) if isinstance(data, dict) else None


def _fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a field stands twice")
    return found


def _number(text: str) -> Number:
    if math.isinf(float(text)):
        raise ValueError("no number is so large")
    return Number(text)


def _refused(text: str) -> None:
    raise ValueError(f"{text} is no JSON")


def is_like(value: Any, kind: SqlType) -> bool:
    """Whether a field's value is of its declared type; one that is missing or null is."""
    if value is None or kind.name == "JSON":
        return True
    if kind.name == "BOOLEAN":
        return isinstance(value, bool)
    if not isinstance(value, str):
        return False
    if kind.is_numeric:
        return isinstance(value, Number) and _fits(value, kind)
    return not isinstance(value, Number) and _reads(value, kind)


def _reads(text: str, kind: SqlType) -> bool:
    if kind.is_time:
        return is_time(text)
    return kind.name != "DATE" or (bool(_DATE.fullmatch(text)) and is_time(f"{text}T00:00:00"))


def _fits(number: Number, kind: SqlType) -> bool:
    if kind.is_integral:
        bits = _BITS[kind.name] - 1
        return bool(_WHOLE.fullmatch(number)) and -(1 << bits) <= int(number[:30]) < 1 << bits
    if kind.name == "DECIMAL":
        return _is_exact(number, kind)
    return kind.name != "FLOAT" or abs(float(number)) < _LARGEST_FLOAT


def _is_exact(number: Number, kind: SqlType) -> bool:
    exponent = re.search(r"[eE][-+]?([0-9]+)$", number)
    if exponent and len(exponent[1]) >= EXPONENT_DIGITS:
        return False
    scale = kind.scale or 0
    scaled = Decimal(number).scaleb(scale) if Decimal(number) else Decimal(0)
    return scaled == scaled.to_integral_value() and scaled.adjusted() < (kind.precision or 0)


def is_time(text: str) -> bool:
    """Whether the text is a time as `TIMES` reads it, also one that no calendar here has."""
    found = _TIME.fullmatch(text)
    if found is None or abs(int(found[1])) > _LAST_YEAR:
        return False
    try:
        _moment(found, 2000 + int(found[1]) % 400)  # the same days in every 400 years
    except ValueError:
        return False
    return True


def time_of(text: str) -> datetime | None:
    """That time in UTC; None where it is before the year 1 or after 9999."""
    found = _TIME.fullmatch(text)
    try:
        return _moment(found, int(found[1])).astimezone(UTC) if found else None
    except (ValueError, OverflowError):
        return None


def _moment(found: re.Match[str], year: int) -> datetime:
    month, day, hour, minute, second = (int(found[at]) for at in range(2, 7))
    micros = int((found[7] or "").ljust(6, "0"))
    return datetime(year, month, day, hour, minute, second, micros, tzinfo=_zone(found))


def _zone(found: re.Match[str]) -> timezone:
    if not found[8]:
        return UTC
    ahead = timedelta(hours=int(found[9]), minutes=int(found[10]))
    if int(found[10]) > 59 or ahead > _WIDEST_ZONE:
        raise ValueError("no zone is so far away")
    return timezone(ahead if found[8] == "+" else -ahead)
