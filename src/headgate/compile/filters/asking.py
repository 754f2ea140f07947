"""A filter's condition as a Python function: what the twin says, fast enough for many events.

Whatever has no quick form here is asked of the twin itself, so that both say the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from headgate.expr.forms import FORMS, formed
from headgate.expr.json_conditions import TEXT, VALUE
from headgate.expr.regex import compiled
from headgate.expr.tree import (
    And,
    Between,
    Case,
    Cast,
    Column,
    Compare,
    Expr,
    Function,
    In,
    IsNull,
    Literal,
    Not,
    Or,
)
from headgate.expr.twin import evaluate
from headgate.expr.twin.casts import cast
from headgate.expr.twin.documents import Json, found_at, read_document, steps_of, text_of, value_of
from headgate.expr.twin.numbers import order
from headgate.expr.twin.values import Held, held
from headgate.spec.filter import JSON_COLUMN
from headgate.spec.types import SqlType

Truth: TypeAlias = bool | None


@dataclass(frozen=True)
class Event:
    """The columns of one event, as the router reads them; NULL is None."""

    columns: Mapping[str, str | int | None]

    @property
    def id(self) -> str:
        return str(self.columns["id"])

    @cached_property
    def header(self) -> Json:
        """What stands in the JSON column; None where it is no JSON."""
        text = self.columns[JSON_COLUMN]
        return read_document(text) if isinstance(text, str) else None


Question: TypeAlias = Callable[[Event], Truth]
Look: TypeAlias = Callable[[Event], Held]


def question(expr: Expr) -> Question:
    """What the condition is on an event: true, false or NULL."""
    match expr:
        case And():
            return _all([question(item) for item in expr.items])
        case Or():
            return _any([question(item) for item in expr.items])
        case Not():
            inner = question(expr.item)
            return lambda event: None if (truth := inner(event)) is None else not truth
        case _:
            return _simple(expr) or _as_the_twin_says(expr)


def _simple(expr: Expr) -> Question | None:
    match expr:
        case IsNull(item=item) if look := _look(item):
            return lambda event: look(event) is None
        case Compare(left=left, right=Literal() as right) if left.type == right.type:
            return _compared(expr, left, right)
        case In(item=item, options=options) if all(item.type == one.type for one in options):
            return _among(item, options)
        case Between(item=item, low=Literal() as low, high=Literal() as high) if (
            item.type == low.type == high.type
        ):
            return _between(item, low, high)
        case Function(name="regexp_like", arguments=(item, Literal(value=str(pattern)))):
            return _found(item, pattern)
        case _:
            return None


def _as_the_twin_says(expr: Expr) -> Question:
    def ask(event: Event) -> Truth:
        found = evaluate(expr, event.columns)
        return None if found is None else bool(found)

    return ask


def _all(parts: list[Question]) -> Question:
    def ask(event: Event) -> Truth:
        known: Truth = True
        for part in parts:
            truth = part(event)
            if truth is False:
                return False
            if truth is None:
                known = None
        return known

    return ask


def _any(parts: list[Question]) -> Question:
    def ask(event: Event) -> Truth:
        known: Truth = False
        for part in parts:
            truth = part(event)
            if truth:
                return True
            if truth is None:
                known = None
        return known

    return ask


def _look(expr: Expr) -> Look | None:
    match expr:
        case Column(name=name):
            return lambda event: event.columns.get(name)
        case Function(
            name=("json_text" | "json_value"),
            arguments=(Column(name="header_data"), Literal(value=str(path))),
        ):
            return _path(expr.name, path)
        case Cast(item=item) if inner := _look(_unformed(item, expr.type)):
            source, target = item.type, expr.type
            return lambda event: cast(inner(event), source, target)
        case _:
            return None


def _unformed(item: Expr, target: SqlType) -> Expr:
    """The text itself where only its form is asked for: the twin's cast asks for it too."""
    if not isinstance(item, Case) or target.name not in FORMS:
        return item
    text = item.branches[0].then
    return text if formed(text, target) == item else item


def _path(name: str, path: str) -> Look:
    steps = steps_of(path)
    shown = {TEXT: text_of, VALUE: value_of}[name]
    return lambda event: shown(found_at(event.header, steps))


def _compared(expr: Compare, left: Expr, right: Literal) -> Question | None:
    look, wanted = _look(left), held(right.value, right.type)
    if look is None or wanted is None or expr.operator == "<=>":
        return None
    holds = _HOLDS[expr.operator]
    if expr.operator == "=" and isinstance(wanted, str):
        return lambda event: None if (found := look(event)) is None else found == wanted
    return lambda event: None if (found := look(event)) is None else holds(order(found, wanted))


def _among(item: Expr, options: tuple[Literal, ...]) -> Question | None:
    look = _look(item)
    if look is None or not all(isinstance(option.value, str) for option in options):
        return None
    wanted = frozenset(option.value for option in options)
    return lambda event: None if (found := look(event)) is None else found in wanted


def _between(item: Expr, low: Literal, high: Literal) -> Question | None:
    look, least, most = _look(item), held(low.value, low.type), held(high.value, high.type)
    if look is None or least is None or most is None:
        return None

    def ask(event: Event) -> Truth:
        found = look(event)
        return None if found is None else order(found, least) >= 0 >= order(found, most)

    return ask


def _found(item: Expr, pattern: str) -> Question | None:
    look, search = _look(item), compiled(pattern).search
    if look is None:
        return None
    return lambda event: None if (text := look(event)) is None else search(str(text)) is not None


_HOLDS: dict[str, Callable[[int], bool]] = {
    "=": lambda sign: sign == 0,
    "<>": lambda sign: sign != 0,
    "<": lambda sign: sign < 0,
    "<=": lambda sign: sign <= 0,
    ">": lambda sign: sign > 0,
    ">=": lambda sign: sign >= 0,
}
