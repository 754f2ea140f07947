"""A tree on one row: logic, comparisons and choices; the rest is in the modules beside."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from headgate.expr.agree import numeric_type
from headgate.expr.tree import (
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
from headgate.expr.twin.calendar import micros_since
from headgate.expr.twin.casts import cast
from headgate.expr.twin.functions import FUNCTIONS
from headgate.expr.twin.numbers import at, operate, order
from headgate.expr.twin.text import like
from headgate.expr.twin.values import Held, Known, Value, held, released
from headgate.spec.types import SqlType


def evaluate(expr: Expr, row: Mapping[str, Value], batch_time: datetime | None = None) -> Value:
    """What the expression is on the row, whose values stand under the keys of the columns.

    A key that is not there is NULL. A date or time that Python cannot hold comes and goes as days
    or microseconds since 1970. Text must be whole: halves of surrogate pairs are not Spark's.
    """
    now = None if batch_time is None else micros_since(batch_time)
    return released(_Row(row, now).of(expr), expr.type)


class _Row:
    def __init__(self, row: Mapping[str, Value], now: int | None) -> None:
        self._row = row
        self._now = now

    def of(self, expr: Expr) -> Held:
        match expr:
            case Column():
                return held(self._row.get(expr.key), expr.type)
            case Literal():
                return held(expr.value, expr.type)
            case BatchTime():
                return self._now
            case Arithmetic():
                return self._arithmetic(expr)
            case Case():
                return self._case(expr)
            case Cast():
                return cast(self.of(expr.item), expr.item.type, expr.type)
            case Function():
                return self._function(expr)
            case _:
                return self._truth(expr)

    def _truth(self, expr: Expr) -> bool | None:
        match expr:
            case Compare():
                return self._compare(expr.operator, expr.left, expr.right)
            case And():
                return _all(self._truths(expr.items))
            case Or():
                return _not(_all([_not(truth) for truth in self._truths(expr.items)]))
            case Not():
                return _not(self._truths((expr.item,))[0])
            case IsNull():
                return self.of(expr.item) is None
            case In():
                return self._in(expr)
            case Between():
                above = self._compare(">=", expr.item, expr.low)
                return _all([above, self._compare("<=", expr.item, expr.high)])
            case Like():
                text = self.of(expr.item)
                return like(text, expr.pattern) if isinstance(text, str) else None
            case _:
                raise TypeError(f"{type(expr).__name__} is not a condition")

    def _truths(self, items: Sequence[Expr]) -> list[bool | None]:
        found = [self.of(item) for item in items]
        return [None if truth is None else bool(truth) for truth in found]

    def _compare(self, operator: Comparison, left: Expr, right: Expr) -> bool | None:
        one, other = self._common((left, right), _common_type((left.type, right.type)))
        if one is None or other is None:
            return (one is None and other is None) if operator == "<=>" else None
        return _HOLDS[operator](order(one, other))

    def _common(self, items: Sequence[Expr], kind: SqlType) -> list[Held]:
        """The values of the items, numbers at one type."""
        return [_at(self.of(item), kind) for item in items]

    def _in(self, expr: In) -> bool | None:
        kind = _common_type((expr.item.type, *(option.type for option in expr.options)))
        item, *options = self._common((expr.item, *expr.options), kind)
        if item is None:
            return None
        return any(option is not None and order(item, option) == 0 for option in options)

    def _arithmetic(self, expr: Arithmetic) -> Held:
        left, right = self.of(expr.left), self.of(expr.right)
        if left is None or right is None or isinstance(left, str) or isinstance(right, str):
            return None
        return operate(expr.operator, left, right, expr.type)

    def _case(self, expr: Case) -> Held:
        for branch in expr.branches:
            if self.of(branch.when):
                return _at(self.of(branch.then), expr.type)
        return None if expr.default is None else _at(self.of(expr.default), expr.type)

    def _function(self, expr: Function) -> Held:
        if expr.name in _AGREEING:
            values = self._common(expr.arguments, expr.type)
            known = [value for value in values if value is not None]
            return _AGREEING[expr.name](known) if known else None
        arguments = [self.of(argument) for argument in expr.arguments]
        if expr.name == "isnan":
            return arguments[0] != arguments[0]
        if any(argument is None for argument in arguments):
            return None
        kinds = [argument.type for argument in expr.arguments]
        return FUNCTIONS[expr.name](arguments, kinds, expr.type)


def _all(truths: Sequence[bool | None]) -> bool | None:
    if False in truths:
        return False
    return None if None in truths else True


def _not(truth: bool | None) -> bool | None:
    return None if truth is None else not truth


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
_AGREEING: dict[str, Callable[[list[Known]], Held]] = {
    "coalesce": lambda known: known[0],
    "least": _extreme(-1),
    "greatest": _extreme(1),
}
