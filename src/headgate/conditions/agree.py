"""How values of different types come to one type, and when they cannot.

Spark would cast implicitly, which raises in ANSI mode on the first row that does not fit and gives
different answers in the other; so whatever could fail has to be written out.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal, InvalidOperation

from headgate.conditions.ast import NULL, BatchTime, Cast, Expr, Literal
from headgate.conditions.casts import digits
from headgate.conditions.spark import to_spark
from headgate.conditions.times import read_date, read_time
from headgate.declarations.refusal import Refusal
from headgate.declarations.spec_types import (
    BIGINT,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    MAX_DECIMAL_PRECISION,
    TIMESTAMP,
    SqlType,
    decimal,
)

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
