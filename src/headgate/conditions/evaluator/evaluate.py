"""Turn a condition's tree into a Python function of one row: logic, comparisons, choices, arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TypeAlias

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
)
from headgate.conditions.evaluator.casts import cast
from headgate.conditions.evaluator.functions import FUNCTIONS, like
from headgate.conditions.evaluator.values import (
    Held,
    Known,
    Value,
    at,
    held,
    micros_since,
    operate,
    order,
    released,
)
from headgate.conditions.type_coercion import numeric_type
from headgate.declarations.types import SqlType

Row: TypeAlias = Mapping[str, Value]
# Of a row and the batch's time in microseconds.
Evaluator: TypeAlias = Callable[[Row, int | None], Held]


def evaluate(expr: Expr, row: Row, batch_time: datetime | None = None) -> Value:
    """What the expression is on the row, whose values stand under the keys of the columns.

    A key that is not there is NULL. A date or time that Python cannot hold comes and goes as days
    or microseconds since 1970. Text must be whole: halves of surrogate pairs are not Spark's.
    """
    now = None if batch_time is None else micros_since(batch_time)
    return released(build_evaluator(expr)(row, now), expr.type)


def build_evaluator(expr: Expr) -> Evaluator:
    """Build the function that evaluates the expression; build it once for many rows."""
    match expr:
        case Column(key=key, type=kind):
            return lambda row, now: held(row.get(key), kind)
        case Literal():
            constant = held(expr.value, expr.type)
            return lambda row, now: constant
        case BatchTime():
            return lambda row, now: now
        case Arithmetic():
            return _arithmetic(expr)
        case Case():
            return _case(expr)
        case Cast(item=item, type=kind):
            inner, source = build_evaluator(item), item.type
            return lambda row, now: cast(inner(row, now), source, kind)
        case Function():
            return _function(expr)
        case _:
            return _condition(expr)


def _condition(expr: Expr) -> Evaluator:
    match expr:
        case Compare():
            return _compare(expr.operator, expr.left, expr.right)
        case And():
            return _all([build_evaluator(item) for item in expr.items])
        case Or():
            return _not(_all([_not(build_evaluator(item)) for item in expr.items]))
        case Not():
            return _not(build_evaluator(expr.item))
        case IsNull():
            inner = build_evaluator(expr.item)
            return lambda row, now: inner(row, now) is None
        case In():
            return _in(expr)
        case Between():
            above = _compare(">=", expr.item, expr.low)
            return _all([above, _compare("<=", expr.item, expr.high)])
        case Like(pattern=pattern):
            text = build_evaluator(expr.item)
            return lambda row, now: (
                like(found, pattern) if isinstance(found := text(row, now), str) else None
            )
        case _:
            raise TypeError(f"{type(expr).__name__} is not a condition")


def _all(parts: Sequence[Evaluator]) -> Evaluator:
    def run(row: Row, now: int | None) -> bool | None:
        is_known = True
        for part in parts:
            truth = part(row, now)
            if truth is None:
                is_known = False
            elif not truth:
                return False
        return True if is_known else None

    return run


def _not(part: Evaluator) -> Evaluator:
    return lambda row, now: None if (truth := part(row, now)) is None else not truth


def _compare(operator: Comparison, left: Expr, right: Expr) -> Evaluator:
    kind = _common_type((left.type, right.type))
    one, other, holds = _typed(left, kind), _typed(right, kind), _HOLDS[operator]

    def run(row: Row, now: int | None) -> bool | None:
        first, second = one(row, now), other(row, now)
        if first is None or second is None:
            return (first is None and second is None) if operator == "<=>" else None
        return holds(order(first, second))

    def run_on_texts(row: Row, now: int | None) -> bool | None:
        first, second = one(row, now), other(row, now)
        return None if first is None or second is None else first == second

    return run_on_texts if operator == "=" and kind.name == "STRING" else run


def _typed(expr: Expr, kind: SqlType) -> Evaluator:
    """The value of an expression; a number at that type."""
    inner = build_evaluator(expr)
    if not kind.is_numeric:
        return inner
    if isinstance(expr, Literal):
        constant = _at(held(expr.value, expr.type), kind)
        return lambda row, now: constant
    return lambda row, now: _at(inner(row, now), kind)


def _in(expr: In) -> Evaluator:
    kind = _common_type((expr.item.type, *(option.type for option in expr.options)))
    item = _typed(expr.item, kind)
    values = [_at(held(option.value, option.type), kind) for option in expr.options]
    options = [value for value in values if value is not None]
    texts = frozenset(options) if kind.name == "STRING" else None

    def run(row: Row, now: int | None) -> bool | None:
        value = item(row, now)
        if value is None:
            return None
        if texts is not None:
            return value in texts
        return any(order(value, option) == 0 for option in options)

    return run


def _arithmetic(expr: Arithmetic) -> Evaluator:
    one, other = build_evaluator(expr.left), build_evaluator(expr.right)

    def run(row: Row, now: int | None) -> Held:
        left, right = one(row, now), other(row, now)
        if left is None or right is None or isinstance(left, str) or isinstance(right, str):
            return None
        return operate(expr.operator, left, right, expr.type)

    return run


def _case(expr: Case) -> Evaluator:
    branches = [(build_evaluator(b.when), _typed(b.then, expr.type)) for b in expr.branches]
    default = None if expr.default is None else _typed(expr.default, expr.type)

    def run(row: Row, now: int | None) -> Held:
        for when, then in branches:
            if when(row, now):
                return then(row, now)
        return None if default is None else default(row, now)

    return run


def _function(expr: Function) -> Evaluator:
    if pick := _PICKS.get(expr.name):
        return _picked(pick, [_typed(item, expr.type) for item in expr.arguments])
    items = [build_evaluator(item) for item in expr.arguments]
    if expr.name == "isnan":
        return lambda row, now: (value := items[0](row, now)) != value
    kinds, make = [item.type for item in expr.arguments], FUNCTIONS[expr.name]

    def run(row: Row, now: int | None) -> Held:
        values = [item(row, now) for item in items]
        return None if None in values else make(values, kinds, expr.type)

    return run


def _picked(pick: Callable[[list[Known]], Held], items: Sequence[Evaluator]) -> Evaluator:
    def run(row: Row, now: int | None) -> Held:
        known = [value for item in items if (value := item(row, now)) is not None]
        return pick(known) if known else None

    return run


def _common_type(kinds: Sequence[SqlType]) -> SqlType:
    """The type at which Spark compares; values that are no numbers have one name already."""
    return numeric_type(kinds) if all(kind.is_numeric for kind in kinds) else kinds[0]


def _at(value: Held, kind: SqlType) -> Held:
    if value is None or not kind.is_numeric or isinstance(value, str):
        return value
    return at(value, kind)


def _extreme(sign: int) -> Callable[[list[Known]], Held]:
    def find(known: list[Known]) -> Held:
        best = known[0]
        for value in known[1:]:
            if sign * order(value, best) > 0:
                best = value
        return best

    return find


_HOLDS: dict[Comparison, Callable[[int], bool]] = {
    "=": lambda order: order == 0,
    "<=>": lambda order: order == 0,
    "<>": lambda order: order != 0,
    "<": lambda order: order < 0,
    "<=": lambda order: order <= 0,
    ">": lambda order: order > 0,
    ">=": lambda order: order >= 0,
}
# Functions of the arguments that are not NULL, all of one type.
_PICKS: dict[str, Callable[[list[Known]], Held]] = {
    "coalesce": lambda known: known[0],
    "least": _extreme(-1),
    "greatest": _extreme(1),
}
