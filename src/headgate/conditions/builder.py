"""Build nodes of the syntax tree and check their types; a Refusal says what does not fit.

Every way into the language (SQL text, JSON conditions, typed rules) goes through here, so that a
tree is well typed and total whatever it was written in.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from decimal import Decimal
from math import isfinite

from headgate.conditions.ast import (
    NULL,
    And,
    Arithmetic,
    BatchTime,
    Between,
    Branch,
    Case,
    Cast,
    Compare,
    Comparison,
    Expr,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Operation,
    Or,
)
from headgate.conditions.spark_sql import (
    BATCH_TIME,
    MAX_PRINTED_SCALE,
    SURE_DIGITS,
    digits,
    is_admitted,
)
from headgate.conditions.type_coercion import (
    agree,
    fitting_decimal,
    formed,
    numeric_type,
    read_date,
    read_time,
    shown,
)
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
    SqlType,
)

_UNORDERED: frozenset[Comparison] = frozenset({"=", "<>", "<=>"})
_SEARCHING = re.compile(r"%+(?=[^%])")
_LIKE_ESCAPE = re.compile(r"\\(.?)", re.DOTALL)


def batch_time(columns: Collection[str]) -> Expr:
    """The time of the batch, beside columns of those keys."""
    hidden, _, _ = BATCH_TIME.partition(".")
    names = {part.casefold() for key in columns for part in (key, *key.split(".", 1))}
    if hidden in names:
        raise Refusal(
            f"the column `{hidden}` hides the time of the batch",
            "Call the column something else.",
            why=f"Spark would read {BATCH_TIME} as a part of it",
        )
    return BatchTime()


def boolean(item: Expr) -> Expr:
    """`item`, which must be a condition."""
    if item.type != BOOLEAN:
        raise Refusal(
            f"{shown(item)} is not a condition", "Compare it with something, or test IS NULL."
        )
    return item


def conjunction(items: Sequence[Expr]) -> Expr:
    """All of them hold; nested ones are made flat."""
    flat = [part for item in items for part in (item.items if isinstance(item, And) else (item,))]
    return boolean(flat[0]) if len(flat) == 1 else And(tuple(boolean(item) for item in flat))


def disjunction(items: Sequence[Expr]) -> Expr:
    """At least one of them holds; nested ones are made flat."""
    flat = [part for item in items for part in (item.items if isinstance(item, Or) else (item,))]
    return boolean(flat[0]) if len(flat) == 1 else Or(tuple(boolean(item) for item in flat))


def negation(item: Expr) -> Expr:
    return Not(boolean(item))


def is_null(item: Expr) -> Expr:
    return IsNull(_valued(item))


def compare(operator: Comparison, left: Expr, right: Expr) -> Expr:
    """A comparison of two values whose types agree."""
    if NULL in (left.type, right.type):
        raise Refusal(
            "comparing with NULL is never true", "Write IS NULL, IS NOT NULL or use coalesce."
        )
    (left, right), common = agree((left, right))
    if common == BOOLEAN and operator not in _UNORDERED:
        raise Refusal("TRUE and FALSE have no order", "Use = or <>.")
    return Compare(operator, left, right)


def is_in(item: Expr, options: Sequence[Expr]) -> Expr:
    """Membership in a list of constants."""
    if any(option.type == NULL for option in options):
        raise Refusal(
            "NULL in a list makes NOT IN never true", "Leave NULL out and write OR … IS NULL."
        )
    if not options or not all(isinstance(option, Literal) for option in options):
        raise Refusal("a list holds constants only", "Write the comparisons out with OR.")
    (item, *rest), _ = agree((_valued(item), *options))
    return In(item, tuple(option for option in rest if isinstance(option, Literal)))


def between(item: Expr, low: Expr, high: Expr) -> Expr:
    """Both limits included."""
    if NULL in (item.type, low.type, high.type):
        raise Refusal("comparing with NULL is never true", "Write the limits out.")
    (item, low, high), common = agree((item, low, high))
    if common == BOOLEAN:
        raise Refusal("TRUE and FALSE have no order", "Use = or <>.")
    return Between(item, low, high)


def like(item: Expr, pattern: Expr) -> Expr:
    """A pattern that is a constant, well formed, and cheap to match."""
    if item.type != STRING:
        raise Refusal(f"LIKE needs text, not {shown(item)}", "Compare it instead.")
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        raise Refusal("the pattern of LIKE is not a constant", "Write it as text in quotes.")
    for escaped in _LIKE_ESCAPE.findall(pattern.value):
        if escaped not in {"%", "_", "\\"}:
            raise Refusal(
                "the pattern has a backslash that takes nothing literally",
                r"Write \\% or \\_ for the character itself, \\\\ for a backslash.",
            )
    if len(_SEARCHING.findall(_LIKE_ESCAPE.sub("x", pattern.value))) > 1:
        raise Refusal(
            "the pattern has two `%` with something after each",
            "Write it as two conditions: … LIKE '%a%' AND … LIKE '%b%'.",
            why="on a long text Java would try every pair of places",
        )
    return Like(item, pattern.value)


def arithmetic(operator: Operation, left: Expr, right: Expr) -> Expr:
    """A sum, difference, product, quotient or remainder of two numbers."""
    left, right = (_operand(item, operator) for item in (left, right))
    if operator == "/":
        left, right = (_divisible(item) for item in (left, right))
        return Arithmetic(operator, left, right, DOUBLE)
    if "DECIMAL" in (left.type.name, right.type.name):
        left, right = (_exact(item) for item in (left, right))
    return Arithmetic(operator, left, right, _result(operator, left.type, right.type))


def negative(item: Expr) -> Expr:
    """The constant with its sign turned, or zero minus the value."""
    value = item.value if isinstance(item, Literal) and item.type.is_numeric else None
    if isinstance(value, Decimal):
        # A minus sign would round it to Python's 28 digits.
        return Literal(value.copy_negate(), item.type)
    if isinstance(value, int | float):
        return Literal(-value, item.type)
    return arithmetic("-", Literal(0, INT), item)


def case(branches: Sequence[tuple[Expr, Expr]], default: Expr | None) -> Expr:
    """The value of the first condition that holds."""
    values = [value for _, value in branches] + ([] if default is None else [default])
    agreed, common = agree(values)
    pairs = zip(branches, agreed[: len(branches)], strict=True)
    return Case(
        tuple(Branch(boolean(when), value) for (when, _), value in pairs),
        None if default is None else agreed[-1],
        common,
    )


def cast(item: Expr, target: SqlType) -> Expr:
    """The value at another type, NULL where it has no counterpart there."""
    if item.type == target or (item.type.is_time and item.type.name == target.name):
        return item
    constant = _constant(item, target)
    if constant is not None:
        return constant
    if not _is_admitted(item, target):
        raise Refusal(f"{shown(item)} cannot be cast to {target}", _other_way(item, target))
    if item.type.name == "DECIMAL" and target == INT:
        # Spark would go by way of a DOUBLE, which rounds 99999999.999999999999 up.
        item = Cast(item, BIGINT)
    return Cast(formed(item, target), target)


def _is_admitted(item: Expr, target: SqlType) -> bool:
    # The batch's time is near now: unlike a column's it cannot overflow.
    near = isinstance(item, BatchTime) and target == TIMESTAMP
    return near or is_admitted(item.type, target)


def number(text: str) -> Literal:
    """A number as written: INT or BIGINT, DECIMAL with a point, DOUBLE with an exponent."""
    if "e" in text.lower():
        return _finite(float(text), text)
    if "." in text:
        return Literal(Decimal(text), decimal_type(Decimal(text)))
    value = int(text)
    if value < 1 << 31:
        return Literal(value, INT)
    if value < 1 << 63:
        return Literal(value, BIGINT)
    return Literal(Decimal(value), decimal_type(Decimal(value)))


def decimal_type(value: Decimal) -> SqlType:
    """The narrowest DECIMAL that holds `value` as written."""
    _, written, exponent = value.as_tuple()
    scale = -exponent if isinstance(exponent, int) else 0
    return fitting_decimal(max(len(written), scale), scale)


def _valued(item: Expr) -> Expr:
    if item.type == NULL:
        raise Refusal("NULL stands where a value is needed", "Name a column.")
    return item


def _operand(item: Expr, operator: Operation) -> Expr:
    if not item.type.is_numeric:
        raise Refusal(f"`{operator}` needs numbers, not {shown(item)}", _number_advice(item))
    return Cast(item, DOUBLE) if item.type == FLOAT else item


def _number_advice(item: Expr) -> str:
    if item.type == STRING:
        return "Write try_cast(… AS DOUBLE), or concat to join text."
    if item.type == DATE or item.type.is_time:
        return "Use date_add, date_sub or datediff."
    return "Use a column that is a number."


def _divisible(item: Expr) -> Expr:
    """Quotients are DOUBLE: how many digits a DECIMAL one keeps depends on Spark's settings."""
    return cast(item, DOUBLE) if item.type.name == "DECIMAL" else item


def _exact(item: Expr) -> Expr:
    """A whole constant beside a DECIMAL takes as many digits as it has, not ten."""
    if isinstance(item, Literal) and isinstance(item.value, int) and item.type.is_integral:
        value = Decimal(item.value)
        return Literal(value, decimal_type(value))
    return item


def _result(operator: Operation, left: SqlType, right: SqlType) -> SqlType:
    names = {left.name, right.name}
    if "DOUBLE" in names:
        return DOUBLE
    if "DECIMAL" not in names:
        return numeric_type((left, right))
    (whole1, scale1), (whole2, scale2) = digits(left), digits(right)
    whole1, whole2, scale = whole1 or 0, whole2 or 0, max(scale1, scale2)
    if operator == "*":
        return fitting_decimal(whole1 + whole2 + scale1 + scale2 + 1, scale1 + scale2)
    if operator == "%":
        _check_quotient(whole1 + scale2)
        return fitting_decimal(max(min(whole1, whole2) + scale, 1), scale)
    return fitting_decimal(max(whole1, whole2) + scale + 1, scale)


def _check_quotient(places: int) -> None:
    if places > MAX_DECIMAL_PRECISION:
        raise Refusal(
            f"the quotient under the remainder may have {places} digits",
            "Cast one side to DOUBLE, or to a DECIMAL with fewer digits.",
            why=f"Spark finds a remainder only where it has at most {MAX_DECIMAL_PRECISION}",
        )


def _constant(item: Expr, target: SqlType) -> Literal | None:
    """What a cast of a constant is at once; None where it is left to Spark."""
    if not isinstance(item, Literal):
        return None
    value = item.value
    if item.type == NULL:
        raise Refusal("a cast of NULL is NULL", "Write NULL.")
    if isinstance(value, str):
        return _from_text(value, target)
    if item.type == INT and target == BIGINT:
        return Literal(value, BIGINT)
    if item.type.is_numeric and target == DOUBLE and isinstance(value, int | Decimal):
        return _finite(float(value), str(value))
    return None


def _from_text(value: str, target: SqlType) -> Literal | None:
    if target == DATE:
        return read_date(value)
    if target.is_time:
        return read_time(value, target)
    if target.name == "DECIMAL" and re.fullmatch(r"\d+(\.\d*)?|\.\d+", value):
        written = Decimal(value)
        return Literal(written, target) if decimal_type(written) == target else None
    return None


def _finite(value: float, text: str) -> Literal:
    if not isfinite(value):
        raise Refusal(f"{text} is too large for a DOUBLE", "Use a smaller number.")
    return Literal(value, DOUBLE)


def _other_way(item: Expr, target: SqlType) -> str:
    if target.name == "DECIMAL" and item.type.name in {"FLOAT", "DOUBLE"}:
        return f"Cast it to a DECIMAL with at most {SURE_DIGITS} digits: a DOUBLE has no more."
    if target == STRING and item.type.name in {"FLOAT", "DOUBLE"}:
        return "Cast it to a DECIMAL first: how a DOUBLE is printed is not fixed."
    if target == STRING and item.type.name == "DECIMAL":
        return f"Cast it to a DECIMAL with at most {MAX_PRINTED_SCALE} decimals first."
    if target.is_time and item.type == DATE:
        return "Compare dates instead: CAST(… AS DATE)."
    return "Use the column's own type."
