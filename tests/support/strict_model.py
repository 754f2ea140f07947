"""What strict_json must make of a record, told by Python's own parser: it shares no code with the product.

It knows the options that the generated records use: two patterns of time, and drift kept or refused.
"""

from __future__ import annotations

import json
import re
from calendar import monthrange
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Context, Decimal
from typing import Any, NoReturn

BLANKS = " \t\r\n"
EXACT = Context(prec=2_000)
DAY = r"(?P<year>[0-9]{4}|-[0-9]{4,6}|\+[0-9]{5,6})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})"
# Letters of a pattern are read in either case.
TIME = r"[Tt](?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})"
WHOLE_NUMBER = re.compile("-?[0-9]+")
WHOLE = {"INT": 31, "BIGINT": 63}


class Number(str):
    """A number as it is written: Python would round it."""


class Refusal(Exception):
    """Why a record is refused, as a reason code."""


@dataclass(frozen=True)
class Expected:
    """The outcome of one record: a code, or the columns as text."""

    code: str | None
    row: Mapping[str, str | None] = field(default_factory=dict[str, str | None])
    extra: Mapping[str, Any] | None = None
    missing: tuple[str, ...] = ()


def expect(value: bytes, columns: Mapping[str, str], refuses_drift: bool = False) -> Expected:
    """What a record becomes when it is read with these columns, names with types."""
    try:
        fields = parse_object(value)
        return _read_fields(fields, columns, refuses_drift)
    except Refusal as refusal:
        return Expected(str(refusal))


def parse_object(value: bytes) -> dict[str, Any]:
    """The fields of a record that is one JSON object."""
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError:
        raise Refusal("not_utf8") from None
    if not text.strip(BLANKS):
        raise Refusal("empty")
    decoder = ObjectDecoder()
    try:
        data, end = decoder.raw_decode(text, len(text) - len(text.lstrip(BLANKS)))
    except (ValueError, RecursionError):
        raise Refusal("not_json") from None
    if not isinstance(data, dict):
        # A number or word that goes on is none: `007`, `nullx`.
        following = text[end : end + 1].strip(BLANKS)
        is_word = isinstance(data, bool) or data is None
        goes_on = following if isinstance(data, Number) else is_word and following.isalnum()
        raise Refusal("not_json" if goes_on else "not_an_object")
    if decoder.has_repeated_name:
        raise Refusal("duplicate_key")
    if text[end:].strip(BLANKS):
        raise Refusal("trailing_text")
    if _has_half_pair(data):
        raise Refusal("half_surrogate")
    return data


class ObjectDecoder(json.JSONDecoder):
    """Python's parser; notes what the parsed value no longer shows."""

    def __init__(self) -> None:
        self.has_repeated_name = False
        super().__init__(
            object_pairs_hook=self._pair,
            parse_int=self._number,
            parse_float=self._number,
            parse_constant=self._refuse,
        )

    def _pair(self, found: list[tuple[str, Any]]) -> dict[str, Any]:
        self.has_repeated_name |= len(dict(found)) < len(found)
        return dict(found)

    def _number(self, text: str) -> Number:
        return Number(text) if len(text) <= 1_000 else self._refuse(text)

    def _refuse(self, text: str) -> NoReturn:
        raise ValueError(text)


def _has_half_pair(data: Any) -> bool:
    try:
        json.dumps(data, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


def _read_fields(
    fields: dict[str, Any], columns: Mapping[str, str], refuses_drift: bool
) -> Expected:
    decimals = [fields.get(name) for name, kind in columns.items() if kind.startswith("DECIMAL")]
    texts = [text for text in decimals if isinstance(text, str)]
    if any(re.fullmatch(r"[^eE]*[eE][-+]?\d{3,}", text) for text in texts):
        raise Refusal("out_of_range")
    row = {name: _read(fields.get(name), kind) for name, kind in columns.items()}
    if _has_infinite_number(fields):
        raise Refusal("out_of_range")
    extra = {name: value for name, value in fields.items() if name not in columns}
    missing = tuple(name for name in columns if name not in fields)
    if refuses_drift and (extra or missing):
        raise Refusal("unknown_field" if extra else "missing_field")
    return Expected(None, row, extra or None, missing)


def _has_infinite_number(fields: dict[str, Any]) -> bool:
    pending: list[Any] = [fields]
    while pending:
        value = pending.pop()
        if isinstance(value, Number) and float(value) in (float("inf"), float("-inf")):
            return True
        if isinstance(value, dict | list):
            pending.extend(value.values() if isinstance(value, dict) else value)
    return False


def _read(value: Any, kind: str) -> str | None:
    """A value as text, as Spark casts it; raises Refusal where it is of another type."""
    if value is None:
        return None
    if kind == "BOOLEAN" and isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Number):
        read = _read_number(value, kind)
    elif isinstance(value, str):
        read = _read_text(value, kind)
    else:
        read = None
    if read is None:
        raise Refusal("wrong_type")
    return read


def _read_number(number: Number, kind: str) -> str | None:
    if kind in WHOLE:
        limit = 1 << WHOLE[kind]
        return (
            str(int(number))
            if WHOLE_NUMBER.fullmatch(number) and -limit <= int(number) < limit
            else None
        )
    if kind == "DOUBLE":
        # -0 is a whole number, and no whole number is below zero and zero.
        return repr(float(int(number) if WHOLE_NUMBER.fullmatch(number) else number))
    if kind.startswith("DECIMAL"):
        precision, scale = (int(part) for part in re.findall("[0-9]+", kind))
        whole = Decimal(number).scaleb(scale, EXACT)
        fits = whole == whole.to_integral_value() and abs(whole) < 10**precision
        return str((whole.to_integral_value() + 0).scaleb(-scale)) if fits else None
    return None


def _read_text(text: str, kind: str) -> str | None:
    if kind == "STRING":
        return text
    pattern = {"DATE": DAY, "TIMESTAMP": DAY + TIME, "TIMESTAMP_NTZ": DAY + TIME}.get(kind)
    found = re.fullmatch(pattern, text) if pattern else None
    if found is None:
        return None
    parts = {name: int(part) for name, part in found.groupdict().items()}
    # The days repeat every 400 years, and Python has no year 0.
    if not 1 <= parts["month"] <= 12:
        return None
    if not 1 <= parts["day"] <= monthrange(2000 + parts["year"] % 400, parts["month"])[1]:
        return None
    if parts.get("hour", 0) > 23 or parts.get("minute", 0) > 59 or parts.get("second", 0) > 59:
        return None
    sign = "-" if parts["year"] < 0 else "+" if parts["year"] > 9_999 else ""
    rest = text.upper().replace("T", " ")[len(found["year"]) :]
    return f"{sign}{abs(parts['year']):04d}{rest}"


def same_json(text: str | None, value: Any) -> bool:
    """Whether JSON text says this value."""
    if text is None or value is None:
        return text is value
    pending = [(ObjectDecoder().decode(text), value)]
    while pending:
        one, other = pending.pop()
        if isinstance(one, Number) and isinstance(other, Number):
            if not _same_number(one, other):
                return False
        elif isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
            pending.extend((one[name], other[name]) for name in one)
        elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
            pending.extend(zip(one, other, strict=True))
        elif type(one) is not type(other) or one != other:
            return False
    return True


def _same_number(one: Number, other: Number) -> bool:
    """Exactly; one with an exponent, or with more digits than a DECIMAL has, as a DOUBLE."""
    is_exact = len(re.sub("[^0-9]", "", other)) <= 38 and "e" not in other.lower()
    return Decimal(one) == Decimal(other) if is_exact else float(one) == float(other)
