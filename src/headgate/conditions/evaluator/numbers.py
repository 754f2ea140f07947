"""Numbers as Spark has them: fixed widths, exact decimals, NaN in its place."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal
from math import fmod, isinf, isnan, nan
from typing import TypeAlias

from headgate.conditions.ast import Operation
from headgate.declarations.spec_types import SqlType

Number: TypeAlias = int | float | Decimal
# Enough for every digit of a double, and of a long text that says a number.
_EXACT = Context(prec=100_000, rounding=ROUND_HALF_UP)
RANGES = {
    "INT": (-(1 << 31), (1 << 31) - 1),
    "BIGINT": (-(1 << 63), (1 << 63) - 1),
}


def whole(value: int, kind: SqlType) -> int | None:
    """The value if the type holds it."""
    least, most = RANGES[kind.name]
    return value if least <= value <= most else None


def wrapped(value: int) -> int:
    """What is left of it in 32 bits: how Spark adds days."""
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


def rescaled(value: Decimal, kind: SqlType, rounding: str = ROUND_HALF_UP) -> Decimal | None:
    """The value at the type's scale; None if it has too many digits then."""
    precision, scale = kind.precision or 0, kind.scale or 0
    # Compared before it is rounded: a text may say 1e999999999.
    if value.adjusted() > precision - scale:
        return None if value else Decimal(0).scaleb(-scale)
    if value.adjusted() < -scale - 1:
        value = (
            Decimal(f"{(value.as_tuple().sign and '-') or ''}1E{-scale - 2}") if value else value
        )
    made = value.quantize(Decimal(1).scaleb(-scale), rounding=rounding, context=_EXACT)
    if not made:
        return made.copy_abs()
    return made if made.adjusted() < precision - scale else None


def at(value: Number, kind: SqlType) -> Number | None:
    """A number at a wider type."""
    if kind.name in {"DOUBLE", "FLOAT"}:
        return float(value)
    if kind.name == "DECIMAL" and not isinstance(value, float):
        return rescaled(Decimal(value), kind)
    return value


def operate(operator: Operation, left: Number, right: Number, kind: SqlType) -> Number | None:
    """The result at its type; None where there is none or it does not fit."""
    if operator in "/%" and right == 0:
        return None
    if kind.name == "DOUBLE":
        return _real(operator, float(left), float(right))
    if isinstance(left, int) and isinstance(right, int):
        return whole(_integral(operator, left, right), kind)
    return rescaled(_exact(operator, Decimal(left), Decimal(right)), kind)


def _real(operator: Operation, left: float, right: float) -> float:
    match operator:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "/":
            return left / right
        case "%":
            return nan if isinf(left) else fmod(left, right)


def _integral(operator: Operation, left: int, right: int) -> int:
    match operator:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case _:
            rest = abs(left) % abs(right)
            return -rest if left < 0 else rest


def _exact(operator: Operation, left: Decimal, right: Decimal) -> Decimal:
    match operator:
        case "+":
            return _EXACT.add(left, right)
        case "-":
            return _EXACT.subtract(left, right)
        case "*":
            return _EXACT.multiply(left, right)
        case _:
            return _EXACT.remainder(left, right)


def order(left: Number | str, right: Number | str) -> int:
    """Below zero, zero or above; NaN equals NaN and is greater than every number.

    Text is ordered by code points, which is the order of its UTF-8 bytes.
    """
    if isinstance(left, str) or isinstance(right, str):
        return (str(left) > str(right)) - (str(left) < str(right))
    if isnan(left) or isnan(right):
        return int(isnan(left)) - int(isnan(right))
    return (left > right) - (left < right)
