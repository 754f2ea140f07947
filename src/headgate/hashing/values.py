"""The text of one value by its logical type: a tag, a body, and an end where the body needs one."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from math import inf, isfinite
from typing import Any, TypeAlias, cast
from uuid import UUID

from headgate.hashing.hash_contract_types import HashType
from headgate.hashing.numbers import (
    date_body,
    decimal_body,
    double_body,
    scaled_decimal,
    scaled_double,
    timestamp_body,
    timestamp_iso,
    with_point,
)

# What a row's value may be; the type says which.
Value: TypeAlias = Any  # rows come from drivers and JSON
Write: TypeAlias = Callable[[Value], bytes]

NULL = b"n;"
EMPTY = {"string": b"s0:", "binary": b"x;", "list": b"L0:", "set": b"S0:", "map": b"M0:"}
TAGS = {
    "string": "s", "uuid": "u", "boolean": "b", "integer": "i", "decimal": "d", "double": "f",
    "date": "c", "timestamp": "t", "binary": "x", "list": "L", "set": "S", "map": "M",
}  # fmt: skip


class UnfitError(ValueError):
    """A value that is none of its field's type; the words say why, without the value."""


@cache
def writer(kind: HashType) -> Write:
    """What writes values of this type in version 2, null among them."""
    write = _PREFIXED[kind.name](kind) if kind.name in _PREFIXED else _ended(kind)
    null = EMPTY[kind.name] if kind.nulls_empty else NULL

    def text(value: Value) -> bytes:
        return null if value is None else write(value)

    return text


@cache
def old_writer(kind: HashType) -> Write:
    """What writes values of this type in version 1: no tags, and null as nothing."""
    write = _old(kind)

    def text(value: Value) -> bytes:
        return b"" if value is None else write(value)

    return text


def _ended(kind: HashType) -> Write:
    body, tag = _body(kind), TAGS[kind.name]

    def write(value: Value) -> bytes:
        return f"{tag}{body(value)};".encode("ascii")

    return write


def _body(kind: HashType) -> Callable[[Value], str]:
    match kind.name:
        case "decimal":
            return lambda value: decimal_body(_decimal(value), kind.scale)
        case "double":
            return lambda value: double_body(_double(value), kind.scale)
        case "timestamp":
            return lambda value: timestamp_body(_time(value), str(kind.unit))
        case name:
            return _PLAIN[name]


def _boolean(value: Value) -> str:
    if value is True or value is False:
        return "true" if value else "false"
    raise UnfitError("it is neither true nor false")


def _integer(value: Value) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise UnfitError("it is no whole number")


def _decimal(value: Value) -> Decimal:
    if isinstance(value, Decimal) and value.is_finite():
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return Decimal(value)
    raise UnfitError("it is no decimal number")


def _double(value: Value) -> float:
    if isinstance(value, float):
        return value
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return _nearest(value)
    raise UnfitError("it is no number")


def _nearest(value: int | Decimal) -> float:
    """A finite number that no double holds is none: infinity would be another value."""
    try:
        found = float(value)
    except (OverflowError, ValueError):
        found = inf
    if not isfinite(found):
        raise UnfitError("no double is so large")
    return found


def _date(value: Value) -> str:
    if isinstance(value, date) and not isinstance(value, datetime):
        return date_body(value)
    raise UnfitError("it is no date")


def _time(value: Value) -> datetime:
    if isinstance(value, datetime):
        return value
    raise UnfitError("it is no time")


def _hex(value: Value) -> str:
    if isinstance(value, bytes | bytearray):
        return value.hex().upper()
    raise UnfitError("it is no row of bytes")


_PLAIN: dict[str, Callable[[Value], str]] = {
    "boolean": _boolean,
    "integer": _integer,
    "date": _date,
    "binary": _hex,
}


def _string(kind: HashType) -> Write:
    def write(value: Value) -> bytes:
        body = string_bytes(kind, value)
        return b"s%d:%b" % (len(body), body)

    return write


def string_bytes(kind: HashType, value: Value) -> bytes:
    """The bytes that count of a string."""
    if not isinstance(value, str):
        raise UnfitError("it is no text")
    text = unicodedata.normalize("NFC", value) if kind.nfc else value
    try:
        return (text.strip(" ") if kind.trim else text).encode()
    except UnicodeEncodeError:
        raise UnfitError("it has half of a character in it") from None


def _uuid(_: HashType) -> Write:
    return lambda value: b"u36:" + uuid_text(value).encode("ascii")


def uuid_text(value: Value) -> str:
    if isinstance(value, UUID):
        return str(value)
    try:
        # Braces, a prefix or missing hyphens would be taken for the same: only one spelling is.
        found = str(UUID(value)) if isinstance(value, str) else ""
    except ValueError:
        found = ""
    if not found or found != value.lower():
        raise UnfitError("it is no UUID of 36 characters")
    return found


def _list(kind: HashType) -> Write:
    item = writer(kind.items[0])

    def write(value: Value) -> bytes:
        return _counted(b"L", [item(one) for one in _each(value, list, tuple)])

    return write


def _set(kind: HashType) -> Write:
    item = writer(kind.items[0])

    def write(value: Value) -> bytes:
        return _counted(
            b"S", sorted({item(one) for one in _each(value, set, frozenset, list, tuple)})
        )

    return write


def _map(kind: HashType) -> Write:
    key, item = (writer(inner) for inner in kind.items)

    def write(value: Value) -> bytes:
        if not isinstance(value, Mapping):
            raise UnfitError("it is no map")
        pairs = cast("Mapping[Value, Value]", value)
        if None in pairs:
            raise UnfitError("a key of it is null")
        return _counted(b"M", sorted(key(one) + item(other) for one, other in pairs.items()))

    return write


def _each(value: Value, *kinds: type) -> Iterable[Value]:
    if isinstance(value, kinds):
        return value
    raise UnfitError(f"it is no {kinds[0].__name__}")


def _counted(tag: bytes, texts: list[bytes]) -> bytes:
    return b"%b%d:%b" % (tag, len(texts), b"".join(texts))


_PREFIXED: dict[str, Callable[[HashType], Write]] = {
    "string": _string,
    "uuid": _uuid,
    "list": _list,
    "set": _set,
    "map": _map,
}


def _old(kind: HashType) -> Write:
    match kind.name:
        case "string":
            return lambda value: string_bytes(kind, value)
        case "uuid":
            return lambda value: uuid_text(value).encode("ascii")
        case "list" | "set" | "map":
            return writer(kind)
        case "decimal" | "double":
            return _old_number(kind)
        case "date":
            return lambda value: (value.isoformat() if _date(value) else "").encode("ascii")
        case "timestamp":
            return lambda value: timestamp_iso(_time(value), str(kind.unit)).encode("ascii")
        case name:
            return lambda value: _PLAIN[name](value).encode("ascii")


def _old_number(kind: HashType) -> Write:
    body = _body(kind)

    def write(value: Value) -> bytes:
        if kind.scale is None:
            return body(value).encode("ascii")
        if kind.name == "decimal":
            scaled = scaled_decimal(_decimal(value), kind.scale)
        else:
            scaled = scaled_double(_double(value), kind.scale)
        text = body(value) if scaled is None else with_point(scaled, kind.scale)
        return text.encode("ascii")

    return write
