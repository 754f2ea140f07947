"""In which form two columns are compared: always by value, never through a type that loses some.

Equal are: NULL and NULL, NaN and NaN, -0.0 and 0.0, 1.5 and 1.50, the same moment at any precision.
Unequal are NULL and anything else, and two texts that differ in any byte.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_DIGITS = 38
_INTEGRAL = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
_REAL = frozenset({"float", "double"})
_MOMENTS = frozenset({"timestamp", "timestamp_ntz"})
_PLAIN = frozenset({"boolean", "date", "string", "binary", "timestamp", "timestamp_ntz", "time"})
_TEXTS = re.compile(r"(?:char|varchar)\(\d+\)|string(?: collate \w+)?")
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
TWO_PARTS = "struct<whole:decimal(38,0),rest:decimal(38,38)>"
_PARTS = (
    "IF({0} IS NULL, NULL, named_struct("
    "'whole', CAST(floor({0}) AS DECIMAL(38, 0)), 'rest', CAST({0} % 1 AS DECIMAL(38, 38))))"
)
# Of a decimal with more digits behind the point the hash contract has no exact form.
MOST_SCALE = 30
UTC_WORDS = "a time without a zone is taken as UTC"
FLOAT_WORDS = "a float is compared as the double that it exactly is"


@dataclass(frozen=True)
class Form:
    """How both sides of a column are brought to one type; `{}` stands for the column."""

    type: str
    onprem: str = "{}"
    cloud: str = "{}"
    note: str = ""


def common_form(onprem: str, cloud: str) -> Form | None:
    """The form in which values of these two types are compared; None where there is none."""
    left, right = _read(onprem), _read(cloud)
    if _digits(left) and _digits(right):
        return _numbers(left, right)
    if {left, right} <= _REAL:
        return Form(left) if left == right else _cast("double", FLOAT_WORDS)
    if frozenset({left, right}) == _MOMENTS:
        # The script sets the session's zone to UTC, so that the cast means just this.
        return _cast("timestamp", UTC_WORDS)
    if left == right and left in _PLAIN:
        return Form(left)
    return _nested(left) if left == right else None


def hash_type(type_: str) -> str | None:
    """The type of the hash contract that keeps all of these values apart; None where none does."""
    if type_ in _HASHED:
        return _HASHED[type_]
    digits = _digits(type_)
    if digits:
        return "decimal" if digits[1] <= MOST_SCALE else None
    inner = hash_type(type_[6:-1]) if type_.startswith("array<") else None
    return f"list<{inner}>" if inner else None


_HASHED = {
    **{name: name for name in ("string", "boolean", "date", "binary", "double")},
    **dict.fromkeys(_INTEGRAL, "integer"),
    **dict.fromkeys(_MOMENTS, "timestamp(us)"),
    "float": "double",
}


def _read(type_: str) -> str:
    plain = type_.lower().replace(", ", ",").strip()
    return "string" if _TEXTS.fullmatch(plain) else plain


def _digits(type_: str) -> tuple[int, int] | None:
    """Digits before and after the point."""
    if type_ in _INTEGRAL:
        return _INTEGRAL[type_], 0
    found = _DECIMAL.fullmatch(type_)
    return (int(found[1]) - int(found[2]), int(found[2])) if found else None


def _numbers(left: str, right: str) -> Form:
    if left == right:
        return Form(left)
    if left in _INTEGRAL and right in _INTEGRAL:
        return _cast("bigint")
    a, b = _digits(left) or (0, 0), _digits(right) or (0, 0)
    whole, scale = max(a[0], b[0]), max(a[1], b[1])
    if whole + scale <= MAX_DIGITS:
        return _cast(f"decimal({whole + scale},{scale})")
    # No DECIMAL holds both, so what stands before and after the point is compared apart.
    return Form(TWO_PARTS, _PARTS, _PARTS)


def _cast(type_: str, note: str = "") -> Form:
    cast = f"CAST({{}} AS {type_.upper().replace(',', ', ')})"
    return Form(type_, cast, cast, note)


def _nested(type_: str) -> Form | None:
    """Collections of one type; a map is compared by its entries in the order of their keys."""
    if type_.startswith("map<"):
        inner = type_[4:]
        odd = "map<" in inner or "variant" in inner
        return None if odd else Form(f"array<entries of {type_}>", _ENTRIES, _ENTRIES)
    if not type_.startswith(("array<", "struct<")) or "map<" in type_ or "variant" in type_:
        return None
    return Form(type_)


_ENTRIES = "array_sort(map_entries({}))"
