"""What each function of the language gives; no argument is NULL here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from math import ceil, floor, isinf, isnan
from typing import Any, TypeAlias

from headgate.conditions.evaluator.calendar import DAY, SECOND, day_of, day_of_year
from headgate.conditions.evaluator.casing import lower, upper
from headgate.conditions.evaluator.json_documents import json_text, json_value
from headgate.conditions.evaluator.numbers import RANGES, rescaled, wrapped
from headgate.conditions.evaluator.text import right, substring
from headgate.conditions.evaluator.twin_values import Held
from headgate.conditions.regex.regex_init import compiled
from headgate.declarations.spec_types import SqlType

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
