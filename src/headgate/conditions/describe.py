"""Describe a condition in plain English, as `fare is below 0, or is missing`.

Every condition and every value of the language has words. A negation is pushed inwards, which
changes nothing where values are missing: the words hold on a row exactly when the condition does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal

from headgate.conditions.ast import (
    And,
    Arithmetic,
    BatchTime,
    Between,
    Case,
    Cast,
    Column,
    Compare,
    Comparison,
    Expr,
    Function,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    children,
)
from headgate.conditions.literals import LiteralValue
from headgate.conditions.type_coercion import unformed
from headgate.declarations.types import BOOLEAN, STRING, SqlType, in_words

LONGEST_TEXT = 60
MOST_OPTIONS = 8
BATCH = "the time of the batch"
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


def _constant(value: LiteralValue) -> str:
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


def _options(items: tuple[Literal, ...]) -> str:
    """The first ones, and how many there are."""
    told = [_constant(item.value) for item in items[:MOST_OPTIONS]]
    more = len(items) - len(told)
    return f"{', '.join(told)} and {more:,} more" if more else listed(told, "or")


def _type_words(kind: SqlType) -> str:
    return _TYPES.get(kind.name, str(kind))


def _value(expr: Expr) -> str:
    """A value in words."""
    match expr:
        case Column():
            return expr.key
        case BatchTime():
            return BATCH
        case Literal():
            return _constant(expr.value)
        case Arithmetic():
            return _arithmetic(expr)
        case Cast():
            return _cast(expr)
        case Function() if expr.name in _NAMED or expr.name in _FUNCTIONS:
            return _function(expr)
        case _:
            return _other(expr)


def _operand(expr: Expr) -> str:
    """A value as a part of another: arithmetic stands in brackets."""
    return f"({_value(expr)})" if isinstance(expr, Arithmetic) else _value(expr)


def _is_span(expr: Expr) -> bool:
    """Whether it is the seconds from one time to another."""
    if not isinstance(expr, Arithmetic) or expr.operator != "-":
        return False
    parts = (expr.left, expr.right)
    return all(isinstance(p, Function) and p.name == "unix_timestamp" for p in parts)


def _span_words(expr: Arithmetic, words_of: Callable[[Expr], str]) -> str:
    later, earlier = (words_of(children(part)[0]) for part in (expr.left, expr.right))
    return f"the time from {earlier} to {later}"


def _seconds(length: int) -> str:
    """A length of time in the largest unit that is exact."""
    if not 0 < length < 86_400 * 36_500:
        return f"{length} seconds"
    return in_words(timedelta(seconds=length)).lower()


def _arithmetic(expr: Arithmetic) -> str:
    if _is_span(expr):
        return f"{_span_words(expr, _operand)} in seconds"
    left, right = _operand(expr.left), _operand(expr.right)
    if expr.operator == "%":
        return f"the remainder of {left} divided by {right}"
    if expr.operator == "-" and isinstance(expr.left, Literal) and expr.left.value == 0:
        return f"minus {right}"
    return f"{left} {_OPERATIONS[expr.operator]} {right}"


def _cast(expr: Cast) -> str:
    """A change between numbers or times goes without saying; what text is read as does not."""
    # "read as a time" already says that a text in another form is missing.
    item, source, target = _operand(unformed(expr.item, expr.type)), expr.item.type, expr.type
    widened = source.is_numeric and target.is_numeric and not target.is_integral
    if widened or (source.is_time and target.is_time):
        return item
    if target.name == "DATE" and source.is_time:
        return f"the date of {item}"
    if source == STRING or target == STRING:
        return f"{item} {'as' if target == STRING else 'read as'} {_type_words(target)}"
    return f"{item} as {_type_words(target)}"


def _function(expr: Function) -> str:
    arguments = [_operand(item) for item in expr.arguments]
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
_OPPOSITE: dict[Comparison, Comparison] = {
    "=": "<>",
    "<>": "=",
    "<": ">=",
    ">=": "<",
    ">": "<=",
    "<=": ">",
}
_ORDER: dict[Comparison, str] = {
    "<": "is below",
    "<=": "is at most",
    ">": "is above",
    ">=": "is at least",
}
_TIME_ORDER: dict[Comparison, str] = {
    "<": "is before",
    "<=": "is not after",
    ">": "is after",
    ">=": "is not before",
}
_SEARCHES = {
    "startswith": ("begins with", "does not begin with"),
    "endswith": ("ends with", "does not end with"),
    "contains": ("contains", "does not contain"),
    "regexp_like": ("matches", "does not match"),
}


@dataclass(frozen=True)
class _Clause:
    """What is spoken of, and what is said of it; the subject is told once where it stays."""

    subject: str
    verb: str

    def after(self, before: _Clause | None) -> str:
        repeated = before is not None and self.subject == before.subject
        return self.verb if repeated or not self.subject else f"{self.subject} {self.verb}"


def describe_condition(condition: Expr) -> str:
    """The condition in words; any expression of the language has some."""
    return _said(condition, holds=True) if condition.type == BOOLEAN else _value(condition)


def _said(expr: Expr, *, holds: bool) -> str:
    match expr:
        case Not():
            return _said(expr.item, holds=not holds)
        case And():
            return _joined(expr.items, "and" if holds else "or", holds=holds)
        case Or():
            return _joined(expr.items, "or" if holds else "and", holds=holds)
        case _:
            return _clause(expr, holds=holds).after(None)


def _joined(items: tuple[Expr, ...], word: str, *, holds: bool) -> str:
    parts: list[str] = []
    before: _Clause | None = None
    for item in items:
        if _is_joined(item):
            words, before = f"({_said(item, holds=holds)})", None
        else:
            clause = _clause(item, holds=holds)
            words, before = clause.after(before), clause
        parts.append(words)
    return f", {word} ".join(parts)


def _is_joined(expr: Expr) -> bool:
    return isinstance(expr, And | Or) or (isinstance(expr, Not) and _is_joined(expr.item))


def _clause(expr: Expr, *, holds: bool) -> _Clause:
    match expr:
        case Not():
            return _clause(expr.item, holds=not holds)
        case Compare():
            return _compared(expr, holds=holds)
        case IsNull():
            return _missing(expr.item, holds=holds)
        case In():
            verb = "is" if len(expr.options) == 1 else "is one of"
            verb = verb if holds else verb.replace("is", "is not", 1)
            return _Clause(_value(expr.item), f"{verb} {_options(expr.options)}")
        case Between():
            verb = "is between" if holds else "is not between"
            limits = f"{_value(expr.low)} and {_value(expr.high)}"
            return _Clause(_value(expr.item), f"{verb} {limits}")
        case Like():
            return _Clause(_value(expr.item), _like(expr.pattern, holds=holds))
        case Function() if expr.type == BOOLEAN:
            return _test(expr, holds=holds)
        case And() | Or():
            return _Clause("", f"({_said(expr, holds=holds)})")
        case _:
            return _Clause(_value(expr), f"is {'true' if holds else 'false'}")


def _other(expr: Expr) -> str:
    """What is neither a column nor a sum: a choice, or a condition in the place of a value."""
    match expr:
        case Case():
            return _choice(expr)
        case Function() if expr.type != BOOLEAN:
            return f"{expr.name} of {listed([_value(item) for item in expr.arguments])}"
        case _:
            return f"whether {_said(expr, holds=True)}"


def _choice(expr: Case) -> str:
    branches = [f"{_value(b.then)} where {_said(b.when, holds=True)}, else" for b in expr.branches]
    default = "missing" if expr.default is None else _value(expr.default)
    return f"({' '.join(branches)} {default})"


def _compared(expr: Compare, *, holds: bool) -> _Clause:
    subject, other = _value(expr.left), _value(expr.right)
    if expr.operator == "<=>":
        verb = "equals" if holds else "differs from"
        return _Clause(subject, f"{verb} {other} (missing equals missing)")
    operator = expr.operator if holds else _OPPOSITE[expr.operator]
    left, right = expr.left, expr.right
    if isinstance(left, Arithmetic) and _is_span(left) and isinstance(right, Literal):
        length = _seconds(right.value) if isinstance(right.value, int) else other
        return _Clause(_span_words(left, _value), f"{_verb(operator, left.type, right)} {length}")
    order = " in the order of text" if operator in _ORDER and left.type == STRING else ""
    return _Clause(subject, f"{_verb(operator, left.type, right)} {other}{order}")


def _verb(operator: Comparison, kind: SqlType, other: Expr) -> str:
    if operator in ("=", "<>"):
        if isinstance(other, Literal):
            return "is" if operator == "=" else "is not"
        return "equals" if operator == "=" else "differs from"
    timely = kind.is_time or kind.name == "DATE"
    return (_TIME_ORDER if timely else _ORDER)[operator]


def _missing(item: Expr, *, holds: bool) -> _Clause:
    if isinstance(item, Cast) and item.item.type == STRING:
        kind = _type_words(item.type)
        verb = f"is missing or not {kind}" if holds else f"is {kind}"
        return _Clause(_value(unformed(item.item, item.type)), verb)
    if item.type == BOOLEAN and not isinstance(item, Column):
        verb = "cannot be told" if holds else "can be told"
        return _Clause(_value(item) if isinstance(item, Case | Cast) else _other(item), verb)
    return _Clause(_value(item), "is missing" if holds else "is present")


def _test(expr: Function, *, holds: bool) -> _Clause:
    search = _SEARCHES.get(expr.name)
    subject, *others = expr.arguments
    if search and others:
        wanted = _pattern(others[0]) if expr.name == "regexp_like" else _value(others[0])
        return _Clause(_value(subject), f"{search[0 if holds else 1]} {wanted}")
    if expr.name == "isnan":
        return _Clause(_value(subject), "is not a number" if holds else "is a number or missing")
    words = f"{expr.name} of {listed([_value(item) for item in expr.arguments])}"
    return _Clause(words, f"is {'true' if holds else 'false'}")


def _pattern(item: Expr) -> str:
    """As people write it: the end of the text is a dollar sign, whatever it became to run."""
    text = item.value if isinstance(item, Literal) else None
    return _constant(re.sub(r"\\z$", "$", text)) if isinstance(text, str) else _value(item)


def _like(pattern: str, *, holds: bool) -> str:
    """The three usual shapes by name, any other as it is written."""
    inner = pattern.strip("%")
    shape = (pattern.startswith("%"), pattern.endswith("%"))
    plain = inner and not set(inner) & set("%_\\") and len(pattern) - len(inner) == sum(shape)
    names = {(False, True): "startswith", (True, False): "endswith", (True, True): "contains"}
    if plain and shape in names:
        return f"{_SEARCHES[names[shape]][0 if holds else 1]} {_constant(inner)}"
    return f"{'has' if holds else 'does not have'} the form {_constant(pattern)}"
