"""Bring values of different types to one type, or refuse; read constants and texts of dates and times.

Spark would cast implicitly, which raises in ANSI mode on the first row that does not fit and gives
different answers in the other; so whatever could fail has to be written out. Texts that are cast
to decimals and times are given to Spark only in a form that it reads to the end (`formed`): it
computes 10 to the power of an exponent (`1e-99999999` takes minutes), takes today's date for a
time of day, and drops a zone where the type has none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal, InvalidOperation

from headgate.conditions.ast import NULL, BatchTime, Branch, Case, Cast, Expr, Function, Literal
from headgate.conditions.regex.pattern import canonical, compiled
from headgate.conditions.spark_sql import digits, to_spark
from headgate.declarations.errors import Refusal
from headgate.declarations.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    MAX_DECIMAL_PRECISION,
    STRING,
    TIMESTAMP,
    TIMESTAMP_LTZ,
    SqlType,
    decimal,
)

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIME = re.compile(
    r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?)?\s?(Z|[+-]\d{2}:\d{2})?"
)


def read_date(text: str) -> Literal:
    """`2024-01-31` as a DATE constant."""
    try:
        if _DATE.fullmatch(text):
            return Literal(date.fromisoformat(text), DATE)
    except ValueError:
        pass
    raise Refusal(f"'{text[:40]}' is not a date", "Write it as '2024-01-31'.")


def read_time(text: str, target: SqlType | None = None) -> Literal:
    """A time constant: zoned when `target` is, or, without a target, when the text is."""
    value = _parsed(text)
    if value is None:
        raise Refusal(f"'{text[:40]}' is not a time", "Write it as '2024-01-31 12:30:00'.")
    zoned = value.tzinfo is not None
    if target is None:
        target = TIMESTAMP_LTZ if zoned else TIMESTAMP
    if target.name == "TIMESTAMP":
        return _zoneless(value, text)
    return Literal(value.astimezone(UTC) if zoned else value.replace(tzinfo=UTC), TIMESTAMP_LTZ)


def _zoneless(value: datetime, text: str) -> Literal:
    if value.tzinfo is not None:
        raise Refusal(
            f"'{text[:40]}' has a time zone, the value beside it has none",
            "Leave the zone away, or declare the column as TIMESTAMP_LTZ.",
        )
    return Literal(value, TIMESTAMP)


def _parsed(text: str) -> datetime | None:
    if not _TIME.fullmatch(text):
        return None
    try:
        value = datetime.fromisoformat(text.replace(" Z", "Z").replace(" +", "+"))
        return value.astimezone(UTC) if value.tzinfo else value
    except (ValueError, OverflowError):
        return None


@dataclass(frozen=True)
class TextForm:
    """How a text has to be written, as a regular expression and in words."""

    pattern: str
    words: str

    def matches(self, text: str) -> bool:
        return compiled(self.pattern).search(text) is not None


# No DECIMAL needs more: it has 38 digits at most.
EXPONENT_DIGITS = 3
_MINUTE = "[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[ T][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.][0-9]{1,9})?"
NUMBER = TextForm(
    canonical(
        f"^ *[-+]?(?:[0-9]+(?:[.][0-9]*)?|[.][0-9]+)(?:[Ee][-+]?[0-9]{{1,{EXPONENT_DIGITS}}})? *$"
    ),
    "a number, with an exponent of at most three digits",
)
_CLOCK = TextForm(canonical(f"^ *{_MINUTE})?)? *$"), "2024-01-31 12:30:00.123456")
_POINT = TextForm(
    canonical(f"^ *{_MINUTE}(?:Z|[-+][0-9]{{2}}:[0-9]{{2}})?)?)? *$"),
    "2024-01-31 12:30:00Z, or with a zone as +02:00",
)
FORMS = {"DECIMAL": NUMBER, "TIMESTAMP": _CLOCK, "TIMESTAMP_LTZ": _POINT}


def formed(item: Expr, target: SqlType) -> Expr:
    """The text where it is in the form that the type's texts have, else NULL."""
    form = FORMS.get(target.name)
    if item.type != STRING or form is None or _is_formed(item, form):
        return item
    return Case((Branch(_matches(item, form), item),), None, STRING)


def unformed(item: Expr, target: SqlType) -> Expr:
    """The text that `formed` was given; any other value is returned as it is."""
    form = FORMS.get(target.name)
    if form is not None and isinstance(item, Case) and _is_formed(item, form):
        return item.branches[0].then
    return item


def _matches(item: Expr, form: TextForm) -> Expr:
    return Function("regexp_like", (item, Literal(form.pattern, STRING)), BOOLEAN)


def _is_formed(item: Expr, form: TextForm) -> bool:
    match item:
        case Case(branches=(Branch(when=when, then=then),), default=None):
            return when == _matches(then, form)
        case _:
            return False


_SHOWN = 40


def agree(items: Sequence[Expr]) -> tuple[tuple[Expr, ...], SqlType]:
    """The items at one type, with constants adapted and only harmless casts added."""
    temporal = _temporal(items)
    adapted = [_timed(item, temporal) for item in items] if temporal else list(items)
    kinds = list(dict.fromkeys(item.type for item in adapted if item.type != NULL))
    if not kinds:
        raise Refusal("nothing here has a type", "Put a column or a constant beside NULL.")
    if all(kind.is_numeric for kind in kinds):
        adapted = [_unfloated(item, kinds) for item in adapted]
        common = numeric_type([item.type for item in adapted if item.type != NULL])
    else:
        common = _same(adapted, kinds)
    return tuple(_typed_null(item, common) for item in adapted), common


def numeric_type(kinds: Sequence[SqlType]) -> SqlType:
    """The type that holds every value of these numeric types."""
    names = {kind.name for kind in kinds}
    if names == {"FLOAT"}:
        return FLOAT
    if names & {"DOUBLE", "FLOAT"}:
        return DOUBLE
    if "DECIMAL" not in names:
        return BIGINT if "BIGINT" in names else INT
    whole = max(digits(kind)[0] or 0 for kind in kinds)
    scale = max(digits(kind)[1] for kind in kinds)
    return fitting_decimal(whole + scale, scale)


def fitting_decimal(precision: int, scale: int) -> SqlType:
    """DECIMAL of that size; refused beyond what Spark can hold without rounding."""
    if precision > MAX_DECIMAL_PRECISION:
        raise Refusal(
            f"the result would need {precision} digits",
            "Cast one side to DOUBLE, or to a DECIMAL with fewer digits.",
            why=f"a DECIMAL has at most {MAX_DECIMAL_PRECISION}",
        )
    return decimal(precision, scale)


def shown(expr: Expr) -> str:
    """An expression and its type, for a message."""
    text = to_spark(expr)
    short = text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
    return f"{short} ({expr.type})"


def _temporal(items: Sequence[Expr]) -> SqlType | None:
    """What constants are read as: a column's kind of time first, else a constant's."""
    kinds = [item.type for item in sorted(items, key=_constancy)]
    times = [kind for kind in kinds if kind.is_time]
    dates = [kind for kind in kinds if kind == DATE]
    columns_are_dates = any(i.type == DATE for i in items if not isinstance(i, Literal))
    if columns_are_dates:
        return DATE
    return (times or dates or [None])[0]


def _constancy(item: Expr) -> int:
    return 2 if isinstance(item, Literal) else int(isinstance(item, BatchTime))


def _timed(item: Expr, target: SqlType) -> Expr:
    if isinstance(item, BatchTime) and target.name == "TIMESTAMP":
        return Cast(item, TIMESTAMP)
    if not isinstance(item, Literal) or item.type == target:
        return item
    value = item.value
    if isinstance(value, str):
        return read_date(value) if target == DATE else read_time(value, target)
    if not target.is_time or not isinstance(value, date):
        return item
    zone = UTC if target.name == "TIMESTAMP_LTZ" else None
    if not isinstance(value, datetime):
        return Literal(datetime.combine(value, time(), tzinfo=zone), _constant_time(target))
    if value.tzinfo is None and zone is not None:
        return Literal(value.replace(tzinfo=zone), _constant_time(target))
    return item


def _constant_time(target: SqlType) -> SqlType:
    return SqlType(target.name, 6)


def _unfloated(item: Expr, kinds: Sequence[SqlType]) -> Expr:
    """FLOAT beside another number: the ANSI modes would meet at different types."""
    return Cast(item, DOUBLE) if item.type == FLOAT and len(kinds) > 1 else item


def _typed_null(item: Expr, common: SqlType) -> Expr:
    return Literal(None, common) if item.type == NULL else item


def _same(items: Sequence[Expr], kinds: Sequence[SqlType]) -> SqlType:
    if len({kind.name for kind in kinds}) == 1:
        return kinds[0]
    first = next(item for item in items if item.type != NULL)
    other = next(item for item in items if item.type != NULL and not _meet(item.type, first.type))
    raise Refusal(
        f"{shown(first)} and {shown(other)} have no type in common", _advice(first, other)
    )


def _meet(one: SqlType, other: SqlType) -> bool:
    return one.name == other.name or (one.is_numeric and other.is_numeric)


def _advice(one: Expr, other: Expr) -> str:
    for text, number in ((one, other), (other, one)):
        if text.type.name == "STRING" and number.type.is_numeric:
            return _text_and_number(text, number)
        if text.type.name == "DATE" and number.type.is_time:
            return f"Write CAST({to_spark(number)} AS DATE) to compare dates."
        if text.type.name == "BOOLEAN":
            return "Compare a BOOLEAN with TRUE or FALSE only."
    return "Compare values of the same type."


def _text_and_number(text: Expr, number: Expr) -> str:
    if isinstance(text, Literal) and isinstance(text.value, str) and _is_number(text.value):
        return f"Write the number without quotes: {text.value.strip()}."
    if isinstance(text, Literal):
        return "Write a number."
    if isinstance(number, Literal):
        return f"Put the value in quotes: '{number.value}'."
    return f"Write try_cast({to_spark(text)} AS {number.type}); it is NULL where that fails."


def _is_number(text: str) -> bool:
    try:
        return Decimal(text.strip()).is_finite()
    except InvalidOperation:
        return False
