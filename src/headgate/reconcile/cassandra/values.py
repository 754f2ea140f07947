"""Converts values of Cassandra to Python's, and keys between their text and the type of their column."""

# The driver ships no types, so what comes from it is unknown to the checker.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, cast

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST, LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
LONGEST_KEY = 65_535
_WHOLE = re.compile(r"-?[0-9]{1,40}")
_INTEGERS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64, "varint": 256}
_TEXTS = ("text", "varchar", "ascii", "inet")
_UUIDS = ("uuid", "timeuuid")
# What the driver gives as Python's own, so that most columns cost nothing.
_PLAIN = frozenset({*_TEXTS, *_INTEGERS, *_UUIDS, "boolean", "decimal", "double", "float", "blob"})


class KeyTypeError(ValueError):
    """A text that no key of the column's type can have: such a row cannot exist."""


def moment(milliseconds: int) -> datetime | int:
    """A timestamp; beyond Python's calendar the milliseconds themselves."""
    try:
        return EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return milliseconds


def micros(value: int) -> datetime:
    """A WRITETIME; one beyond the calendar, as of a writer that counts nanoseconds, is its end."""
    try:
        return EPOCH + timedelta(microseconds=value)
    except OverflowError:
        return LAST if value > 0 else FIRST


def converter(cql_type: str) -> Callable[[Any], object] | None:
    """What makes a value of this column plain; None where it is so already."""
    if cql_type in _PLAIN:
        return None
    return _moment_of if cql_type == "timestamp" else plain


def _moment_of(value: Any) -> object:
    """Timestamps are asked for as milliseconds: a far one would break the driver's connection."""
    return None if value is None else moment(cast("int", value))


def plain(value: Any) -> object:
    """Any value of the driver as Python's own: times with their zone, collections without class."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value
    if hasattr(value, "nanosecond_time"):
        return value.time() if value.nanosecond_time % 1000 == 0 else str(value)
    if hasattr(value, "days_from_epoch"):
        return _date(value)
    return _collection(value)


def _date(value: Any) -> object:
    try:
        return value.date()
    except (ValueError, OverflowError):
        return str(value)


def _collection(value: Any) -> object:
    if hasattr(value, "_asdict"):
        return {name: plain(item) for name, item in value._asdict().items()}
    if isinstance(value, Mapping):
        pairs = cast("Mapping[Any, Any]", value).items()
        return {_hashable(plain(key)): plain(item) for key, item in pairs}
    if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
        return value
    items = [plain(item) for item in value]
    return tuple(items) if isinstance(value, tuple) else items


def _hashable(key: object) -> Any:
    """A key of a map, which may itself be a collection."""
    if isinstance(key, Mapping):
        pairs = cast("Mapping[Any, Any]", key).items()
        return tuple((_hashable(name), _hashable(item)) for name, item in pairs)
    return tuple(map(_hashable, key)) if isinstance(key, (list, tuple)) else key


def key_values(text: str, types: Sequence[str]) -> tuple[object, ...]:
    """The values of a key: one column's text, or of several a JSON list in their order."""
    if len(types) == 1:
        if not 0 < len(text.encode(errors="replace")) <= LONGEST_KEY:
            raise KeyTypeError("no key is empty, or as long as this one")
        return (_key_value(text, types[0]),)
    try:
        parts = json.loads(text, parse_int=str, parse_float=str)
    except ValueError as error:
        raise KeyTypeError(f"`{text}` is no JSON list of {len(types)} values") from error
    if not isinstance(parts, list) or len(cast("list[Any]", parts)) != len(types):
        raise KeyTypeError(f"`{text}` is no JSON list of {len(types)} values")
    return tuple(_key_value(str(p), t) for p, t in zip(parts, types, strict=True))


def _key_value(text: str, cql_type: str) -> object:
    try:
        return _read_key(text, cql_type)
    except (ValueError, InvalidOperation, OverflowError) as error:
        raise KeyTypeError(f"`{text}` is no {cql_type}") from error


def _read_key(text: str, cql_type: str) -> object:
    if cql_type in _TEXTS:
        return _text(text, cql_type)
    if cql_type in _INTEGERS:
        return _integer(text, _INTEGERS[cql_type])
    if cql_type in _UUIDS:
        return uuid.UUID(text)
    if cql_type == "boolean":
        return {"true": True, "false": False}.get(text.lower(), text == "1")
    if cql_type == "blob":
        return bytes.fromhex(text.removeprefix("0x"))
    if cql_type == "timestamp":
        found = datetime.fromisoformat(text)
        return found if found.tzinfo else found.replace(tzinfo=UTC)
    return Decimal(text) if cql_type == "decimal" else _other_key(text, cql_type)


def _text(text: str, cql_type: str) -> str:
    text.encode("ascii" if cql_type == "ascii" else "utf-8")  # a lone surrogate is no text
    return text


def _integer(text: str, bits: int) -> int:
    if not _WHOLE.fullmatch(text):
        raise ValueError(text)
    number = int(text)
    if not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise ValueError(text)
    return number


def _other_key(text: str, cql_type: str) -> object:
    if cql_type in ("double", "float"):
        return float(text)
    if cql_type == "date":
        return datetime.strptime(text, "%Y-%m-%d").date()
    raise ValueError(f"keys of the type {cql_type} are not read")
