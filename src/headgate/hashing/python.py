"""Text and hash of a row by its contract, in Python. The specification is docs/hash_contract.md.

First numbers and times: integers or exact digits that every language spells alike. Then the writer of
each logical type: a tag, a body, and an end where the body needs one. `row_text` joins the fields and
`row_hash` digests the text. A row that lacks a field, or has a value of another type, raises
RowRefusedError, whose message does not contain the value.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache
from math import inf, isfinite, isnan
from typing import Any, TypeAlias, cast
from uuid import UUID

from headgate.errors import RowRefusedError
from headgate.hashing.contract import HashContract, HashField
from headgate.hashing.types import MOST_DIGITS, HashType

_LONG = 2.0**63
_POWERS = tuple(float(10**scale) for scale in range(16))
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_DAY = date(1970, 1, 1).toordinal()
_MICROSECOND = timedelta(microseconds=1)
_IN_UNIT = {"s": 1_000_000, "ms": 1_000, "us": 1}
_UNIT_DIGITS = {"s": 0, "ms": 3, "us": 6}


def decimal_body(value: Decimal, scale: int | None) -> str:
    """A finite decimal, rounded half away from zero to its scale; exact where that is too long."""
    scaled = None if scale is None else scaled_decimal(value, scale)
    return exact_decimal(value) if scaled is None else str(scaled)


def scaled_decimal(value: Decimal, scale: int) -> int | None:
    """`value` × 10^scale as an integer; None when it has more digits than any table can hold."""
    sign, digits, exponent = value.as_tuple()
    # How many digits stay; an exponent can be two thousand million, so nothing is built before that.
    kept = len(digits) + int(exponent) + scale
    if kept < 0 or not any(digits):
        return 0
    if kept > MOST_DIGITS:
        return None
    whole = int("".join(map(str, digits[:kept])).ljust(kept, "0") or "0")
    scaled = whole + (kept < len(digits) and digits[kept] >= 5)
    if scaled >= 10**MOST_DIGITS:
        return None
    return -scaled if sign else scaled


def exact_decimal(value: Decimal) -> str:
    """Digits that do not end in zero, and the power of ten that they count: `12e2` is 1200."""
    sign, digits, exponent = value.as_tuple()
    text = "".join(map(str, digits)).lstrip("0")
    kept = text.rstrip("0")
    if not kept:
        return "0e0"
    return f"{'-' if sign else ''}{kept}e{int(exponent) + len(text) - len(kept)}"


def double_body(value: float, scale: int | None) -> str:
    """A double at its scale, rounded half to even; where that is no 64-bit integer, the double itself."""
    scaled = None if scale is None else scaled_double(value, scale)
    return exact_double(value) if scaled is None else str(scaled)


def scaled_double(value: float, scale: int) -> int | None:
    product = value * _POWERS[scale]
    return round(product) if -_LONG < product < _LONG else None


def exact_double(value: float) -> str:
    """As Java's Double.toHexString, with one zero and one NaN."""
    if not isfinite(value):
        return "NaN" if isnan(value) else f"{'-' if value < 0 else ''}Infinity"
    mantissa, _, exponent = (value + 0.0).hex().partition("p")
    whole, _, fraction = mantissa.partition(".")
    return f"{whole}.{fraction.rstrip('0') or '0'}p{int(exponent)}"


def date_body(value: date) -> str:
    """Days since 1970-01-01."""
    return str(value.toordinal() - _FIRST_DAY)


def timestamp_body(value: datetime, unit: str) -> str:
    """Whole units since 1970, rounded towards the past; a time without a zone is UTC."""
    return str((_in_utc(value) - _EPOCH) // _MICROSECOND // _IN_UNIT[unit])


def timestamp_iso(value: datetime, unit: str) -> str:
    """As version 1 writes it: `2024-01-31T12:30:00.123Z`."""
    utc, digits = _in_utc(value), _UNIT_DIGITS[unit]
    fraction = f".{utc.microsecond:06d}"[: digits + 1] if digits else ""
    return f"{utc.year:04d}-{utc:%m-%dT%H:%M:%S}{fraction}Z"


def _in_utc(value: datetime) -> datetime:
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def with_point(scaled: int, scale: int) -> str:
    """A scaled integer with its point put back: -5 at scale 2 is `-0.05`."""
    digits = f"{abs(scaled):0{scale + 1}d}"
    sign = "-" if scaled < 0 else ""
    return f"{sign}{digits[:-scale]}.{digits[-scale:]}" if scale else f"{sign}{digits}"


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


_DIGESTS = {"SHA-256": hashlib.sha256, "SHA-512": hashlib.sha512, "MD5": hashlib.md5}


def row_hash(contract: HashContract, row: Mapping[str, Value]) -> str:
    """The row's hash, in lower-case hexadecimal; a RowRefusedError when it cannot have one."""
    return _DIGESTS[contract.algorithm](row_text(contract, row)).hexdigest()


def row_text(contract: HashContract, row: Mapping[str, Value]) -> bytes:
    """What is hashed. Fields that the contract does not name do not count."""
    if contract.hash_version == 1:
        ordered = sorted(contract.fields, key=_name_bytes)
        return b"|".join(_text(field, old_writer(field.kind), row) for field in ordered)
    return b"".join(_text(field, writer(field.kind), row) for field in contract.fields)


def _name_bytes(field: HashField) -> bytes:
    return field.name.encode()


def _text(field: HashField, write: Write, row: Mapping[str, Value]) -> bytes:
    if field.name not in row:
        raise RowRefusedError(
            f"the row has no field `{field.name}`",
            why="the hash contract names it; a field that is not there is not the same as null",
            fix="send the field, as null where it has no value, or take it out of the contract",
        )
    try:
        return write(row[field.name])
    except UnfitError as unfit:
        raise RowRefusedError(
            f"`{field.name}` is no {field.kind}",
            why=str(unfit),
            fix="correct the value, or the field's type in the contract",
        ) from None
