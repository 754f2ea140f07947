"""The functions of the language in Python; no argument is NULL here.

Characters are code points, as in Spark. Upper and lower case follow Unicode 16 as Spark's library
does, where Python 3.11 has 14: only what came in between is written down, a newer Python agrees by
itself, and a test compares every character with Spark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from functools import lru_cache
from math import ceil, floor, isinf, isnan
from typing import Any, TypeAlias

from headgate.conditions.evaluator.json_documents import json_text, json_value
from headgate.conditions.evaluator.values import (
    DAY,
    RANGES,
    SECOND,
    Held,
    day_of,
    day_of_year,
    rescaled,
    wrapped,
)
from headgate.conditions.regex.pattern import compiled
from headgate.declarations.types import SqlType

_LOWER: dict[int, int] = {
    0x1C89: 0x1C8A,
    0xA7CB: 0x0264,
    0xA7CC: 0xA7CD,
    0xA7DA: 0xA7DB,
    0xA7DC: 0x019B,
    **{upper: upper + 0x20 for upper in range(0x10D50, 0x10D66)},
}
_UPPER = {lower: upper for upper, lower in _LOWER.items()}
# A capital sigma ends a word when a cased letter is before it and none behind, marks left aside.
_MARKS = (
    (0x0897, 0x0897),
    (0x0ECE, 0x0ECE),
    (0x10D4E, 0x10D4E),
    (0x10D69, 0x10D6D),
    (0x10D6F, 0x10D6F),
    (0x10EFC, 0x10EFF),
    (0x11241, 0x11241),
    (0x113BB, 0x113C0),
    (0x113CE, 0x113CE),
    (0x113D0, 0x113D0),
    (0x113D2, 0x113D2),
    (0x113E1, 0x113E2),
    (0x11F00, 0x11F01),
    (0x11F36, 0x11F3A),
    (0x11F40, 0x11F40),
    (0x11F42, 0x11F42),
    (0x11F5A, 0x11F5A),
    (0x13439, 0x13440),
    (0x13447, 0x13455),
    (0x1611E, 0x16129),
    (0x1612D, 0x1612F),
    (0x16D40, 0x16D42),
    (0x16D6B, 0x16D6C),
    (0x1E030, 0x1E06D),
    (0x1E08F, 0x1E08F),
    (0x1E4EB, 0x1E4EF),
    (0x1E5EE, 0x1E5EF),
)
_LETTERS = (*_LOWER, *_UPPER, *range(0x1DF25, 0x1DF2B))
_NO_MARK = 0x1171E  # it was one until Unicode 15
_SIGMA = "\u03a3"
# What stands for each character where only its part in that rule counts. The dotted I is the one
# character whose lower case has another length.
_ROLES = {
    **{mark: 0x0301 for first, last in _MARKS for mark in range(first, last + 1)},
    **dict.fromkeys((*_LETTERS, 0x0130), ord("a")),
    _NO_MARK: ord("0"),
}


def upper(text: str) -> str:
    return text.upper() if text.isascii() else text.translate(_UPPER).upper()


def lower(text: str) -> str:
    if _SIGMA not in text:
        return text.lower() if text.isascii() else text.translate(_LOWER).lower()
    roles = text.translate(_ROLES).lower()
    return "".join(
        role if character == _SIGMA else character.translate(_LOWER).lower()
        for character, role in zip(text, roles, strict=True)
    )


_PIECES = re.compile(r"\\(.)|([%_])|([^\\%_]+)", re.DOTALL)


@lru_cache(maxsize=1_000)
def _pattern(pattern: str) -> re.Pattern[str]:
    wild = {"%": ".*", "_": "."}
    parts = [
        wild[sign] if sign else re.escape(taken or plain)
        for taken, sign, plain in _PIECES.findall(pattern)
    ]
    return re.compile("".join(parts), re.DOTALL)


def like(text: str, pattern: str) -> bool:
    return _pattern(pattern).fullmatch(text) is not None


def substring(text: str, place: int, count: int) -> str:
    """From a place counted from 1, or from the end when it is negative; what is outside is cut."""
    start = place - 1 if place > 0 else len(text) + place if place < 0 else 0
    return text[max(start, 0) : max(start + count, 0)] if count > 0 else ""


def right(text: str, count: int) -> str:
    return text[-count:] if count > 0 else ""


# Values, their types, and the type of the result. The types were checked when the tree was built.
Maker: TypeAlias = Callable[[Sequence[Any], Sequence[SqlType], SqlType], Held]


def _plain(make: Callable[..., Held]) -> Maker:
    return lambda values, _kinds, _result: make(*values)


def _of_text(make: Callable[[str], Held]) -> Maker:
    return _plain(make)


def _of_texts(make: Callable[[str, str], Held]) -> Maker:
    return _plain(make)


def _amount(value: float | Decimal) -> float | Decimal:
    return value.copy_abs() if isinstance(value, Decimal) else abs(value)


def _left(text: str, count: int) -> str:
    return substring(text, 1, count)


def _concat(*texts: str) -> str:
    return "".join(texts)


def _days(value: int, kind: SqlType) -> int:
    return value // DAY if kind.is_time else value


def _date_part(part: Callable[[int], int]) -> Maker:
    return lambda values, kinds, _result: part(_days(values[0], kinds[0]))


def _time_part(unit: int, size: int) -> Maker:
    return lambda values, _kinds, _result: values[0] // (unit * SECOND) % size


def _whole(real: Callable[[float], int], rounding: str) -> Maker:
    def make(values: Sequence[Any], _kinds: Sequence[SqlType], result: SqlType) -> Held:
        value = values[0]
        return rescaled(value, result, rounding) if isinstance(value, Decimal) else _cut(value)

    def _cut(value: float) -> int:
        least, most = RANGES["BIGINT"]
        if isnan(value):
            return 0
        if isinf(value):
            return most if value > 0 else least
        return max(least, min(most, real(value)))

    return make


def _datediff(values: Sequence[Any], kinds: Sequence[SqlType], _result: SqlType) -> Held:
    end, start = (_days(value, kind) for value, kind in zip(values, kinds, strict=True))
    return wrapped(end - start)


def _shifted(sign: int) -> Maker:
    return lambda values, kinds, _result: wrapped(_days(values[0], kinds[0]) + sign * values[1])


def _seconds(micros: int) -> int:
    """Cut off towards 1970, before it too."""
    return micros // SECOND if micros >= 0 else -(-micros // SECOND)


FUNCTIONS: dict[str, Maker] = {
    "lower": _plain(lower),
    "upper": _plain(upper),
    "trim": _of_text(lambda text: text.strip(" ")),
    "ltrim": _of_text(lambda text: text.lstrip(" ")),
    "rtrim": _of_text(lambda text: text.rstrip(" ")),
    "length": _of_text(len),
    "substring": _plain(substring),
    "left": _plain(_left),
    "right": _plain(right),
    "replace": _plain(str.replace),
    "concat": _plain(_concat),
    "startswith": _of_texts(lambda text, other: text.startswith(other)),
    "endswith": _of_texts(lambda text, other: text.endswith(other)),
    "contains": _of_texts(lambda text, other: other in text),
    "instr": _of_texts(lambda text, other: text.find(other) + 1),
    "regexp_like": _of_texts(lambda text, pattern: compiled(pattern).search(text) is not None),
    "json_text": _of_texts(json_text),
    "json_value": _of_texts(json_value),
    "abs": _plain(_amount),
    "floor": _whole(floor, ROUND_FLOOR),
    "ceil": _whole(ceil, ROUND_CEILING),
    "round": lambda values, _kinds, result: rescaled(values[0], result),
    "year": _date_part(lambda days: day_of(days).year),
    "quarter": _date_part(lambda days: (day_of(days).month + 2) // 3),
    "month": _date_part(lambda days: day_of(days).month),
    "day": _date_part(lambda days: day_of(days).day),
    "dayofweek": _date_part(lambda days: (days + 4) % 7 + 1),
    "dayofyear": _date_part(day_of_year),
    "hour": _time_part(3_600, 24),
    "minute": _time_part(60, 60),
    "second": _time_part(1, 60),
    "unix_timestamp": _plain(_seconds),
    "datediff": _datediff,
    "date_add": _shifted(1),
    "date_sub": _shifted(-1),
}
