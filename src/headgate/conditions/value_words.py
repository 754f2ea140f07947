"""The values of a condition in plain words: columns, constants, sums and functions."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import TypeAlias

from headgate.conditions.ast import (
    Arithmetic,
    BatchTime,
    Cast,
    Column,
    Expr,
    Function,
    Literal,
    children,
)
from headgate.conditions.expr_literals import LiteralValue
from headgate.conditions.forms import unformed
from headgate.declarations.durations import in_words
from headgate.declarations.spec_types import STRING, SqlType

LONGEST_TEXT = 60
MOST_OPTIONS = 8
BATCH = "the time of the batch"
Told: TypeAlias = Callable[[Expr], str]

_OPERATIONS = {"+": "plus", "-": "minus", "*": "times", "/": "divided by"}
_OF = "year quarter month day hour minute second".split()
# {0}, {1} and {2} are the arguments in words; the words of each are a noun.
_FUNCTIONS: Mapping[str, str] = {
    "lower": "{0} in lower case",
    "upper": "{0} in upper case",
    "trim": "{0} without blanks at its ends",
    "ltrim": "{0} without blanks at its beginning",
    "rtrim": "{0} without blanks at its end",
    "length": "the length of {0}",
    "substring": "the {2} characters of {0} from place {1}",
    "left": "the first {1} characters of {0}",
    "right": "the last {1} characters of {0}",
    "replace": "{0} with {2} put for {1}",
    "instr": "the place of {1} in {0}",
    **{part: f"the {part} of {{0}}" for part in _OF},
    "dayofweek": "the day of the week (Sunday is 1) of {0}",
    "dayofyear": "the day of the year of {0}",
    "unix_timestamp": "the seconds since 1970 of {0}",
    "datediff": "the days from {1} to {0}",
    "date_add": "the date {1} days after {0}",
    "date_sub": "the date {1} days before {0}",
    "abs": "{0} without its sign",
    "floor": "{0} rounded down",
    "ceil": "{0} rounded up",
    "round": "{0} rounded to {1} decimals",
}
_TYPES = {
    "INT": "a whole number",
    "BIGINT": "a whole number",
    "DECIMAL": "a decimal number",
    "FLOAT": "a number",
    "DOUBLE": "a number",
    "DATE": "a date",
    "TIMESTAMP": "a time",
    "TIMESTAMP_LTZ": "a time",
    "BOOLEAN": "true or false",
    "STRING": "text",
}


def listed(items: list[str], word: str = "and") -> str:
    """`a, b and c`."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} {word} {items[-1]}"


def constant(value: LiteralValue) -> str:
    """A constant as a person writes it; nothing in it can end the line or hide."""
    match value:
        case None:
            return "missing"
        case bool():
            return "true" if value else "false"
        case str():
            return _text(value)
        case datetime():
            return f"{value.replace(tzinfo=None)}{' UTC' if value.tzinfo else ''}"
        case Decimal() | date():
            return str(value)
        case int():
            return str(value)
        case float():
            # The largest power of ten below 2**53: up to it a DOUBLE is exactly the digits shown.
            is_plain = value.is_integer() and abs(value) < 1e15
            return str(int(value)) if is_plain else repr(value)


def _text(value: str) -> str:
    """A text in quotes; a quote inside is doubled, so that no text can pose as several conditions."""
    short = value if len(value) <= LONGEST_TEXT else f"{value[: LONGEST_TEXT - 1]}…"
    shown = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in short)
    return "'" + shown.replace("'", "''") + "'"


def options(items: tuple[Literal, ...]) -> str:
    """The first ones, and how many there are."""
    told = [constant(item.value) for item in items[:MOST_OPTIONS]]
    more = len(items) - len(told)
    return f"{', '.join(told)} and {more:,} more" if more else listed(told, "or")


def type_words(kind: SqlType) -> str:
    return _TYPES.get(kind.name, str(kind))


def value(expr: Expr, condition: Told) -> str:
    """A value in words; `condition` tells what stands in it that is true or false."""

    def told(part: Expr) -> str:
        words = value(part, condition)
        return f"({words})" if isinstance(part, Arithmetic) else words

    match expr:
        case Column():
            return expr.key
        case BatchTime():
            return BATCH
        case Literal():
            return constant(expr.value)
        case Arithmetic():
            return _arithmetic(expr, told)
        case Cast():
            return _cast(expr, told)
        case Function() if expr.name in _NAMED or expr.name in _FUNCTIONS:
            return _function(expr, told)
        case _:
            return condition(expr)


def is_span(expr: Expr) -> bool:
    """Whether it is the seconds from one time to another."""
    if not isinstance(expr, Arithmetic) or expr.operator != "-":
        return False
    parts = (expr.left, expr.right)
    return all(isinstance(p, Function) and p.name == "unix_timestamp" for p in parts)


def span_words(expr: Arithmetic, told: Told) -> str:
    later, earlier = (told(children(part)[0]) for part in (expr.left, expr.right))
    return f"the time from {earlier} to {later}"


def seconds(length: int) -> str:
    """A length of time in the largest unit that is exact."""
    if not 0 < length < 86_400 * 36_500:
        return f"{length} seconds"
    return in_words(timedelta(seconds=length)).lower()


def _arithmetic(expr: Arithmetic, told: Told) -> str:
    if is_span(expr):
        return f"{span_words(expr, told)} in seconds"
    left, right = told(expr.left), told(expr.right)
    if expr.operator == "%":
        return f"the remainder of {left} divided by {right}"
    if expr.operator == "-" and isinstance(expr.left, Literal) and expr.left.value == 0:
        return f"minus {right}"
    return f"{left} {_OPERATIONS[expr.operator]} {right}"


def _cast(expr: Cast, told: Told) -> str:
    """A change between numbers or times goes without saying; what text is read as does not."""
    # "read as a time" already says that a text in another form is missing.
    item, source, target = told(unformed(expr.item, expr.type)), expr.item.type, expr.type
    widened = source.is_numeric and target.is_numeric and not target.is_integral
    if widened or (source.is_time and target.is_time):
        return item
    if target.name == "DATE" and source.is_time:
        return f"the date of {item}"
    if source == STRING or target == STRING:
        return f"{item} {'as' if target == STRING else 'read as'} {type_words(target)}"
    return f"{item} as {type_words(target)}"


def _function(expr: Function, told: Told) -> str:
    arguments = [told(item) for item in expr.arguments]
    named = _NAMED.get(expr.name)
    return named(arguments) if named else _filled(_FUNCTIONS[expr.name], arguments)


def _filled(form: str, arguments: list[str]) -> str:
    """Not by `format`: a constant may have braces in it."""
    return re.sub(r"\{(\d)\}", lambda place: arguments[int(place[1])], form)


_NAMED: Mapping[str, Callable[[list[str]], str]] = {
    "coalesce": lambda items: f"the first of {listed(items)} that is present",
    "least": lambda items: f"the least of {listed(items)}",
    "greatest": lambda items: f"the greatest of {listed(items)}",
    "concat": lambda items: f"{listed(items)} joined",
}
