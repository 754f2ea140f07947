"""Typed rules as conditions: each matches the rows that are bad.

How NULL is treated is the rule's `null_handling`: under `fail` a NULL in a field is bad too, else it
is not; only `required` asks for NULL itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date
from typing import TypeVar, get_args

from headgate.conditions import builder as build
from headgate.conditions.ast import Column, Compare, Comparison, Expr, Literal
from headgate.conditions.faults import ExprError, ExprFault
from headgate.conditions.functions import call
from headgate.declarations.refusal import Refusal
from headgate.declarations.spec_types import BOOLEAN, STRING
from headgate.quality.compile.rules_columns import RuleColumns
from headgate.quality.spec.rule_set import Constant, Limit, Rule, RuleType
from headgate.quality.spec.rules_forms import operator

MAX_AGE_SECONDS = 86_400
# Two thousand years: nobody writes an earlier time down.
MOST_AGE_SECONDS = 2_000 * 365 * 86_400
MISSING, EXTRA = "_missing", "_extra"
Made = TypeVar("Made")


@dataclass
class Lowering:
    """One typed rule on its way to a condition; `faults` are by the key that they stand at."""

    columns: RuleColumns
    rule: Rule
    faults: list[tuple[str, ExprFault]] = field(default_factory=list[tuple[str, ExprFault]])

    def condition(self) -> Expr | None:
        """The condition; None after a fault, and for a rule that has none."""
        form = _FORMS.get(self.rule.type) if self.rule.type else None
        return None if form is None else form(self)

    def attempt(self, key: str, make: Callable[[], Made]) -> Made | None:
        """What `make` makes; a refusal is noted at `key`."""
        try:
            return make()
        except Refusal as refusal:
            self.faults.append((key, ExprFault(refusal.what, refusal.why, refusal.fix, None)))
        except ExprError as error:
            self.faults += [(key, fault) for fault in error.faults]
        return None

    def column(self, key: str, name: str | None) -> Column | None:
        return self.attempt(key, lambda: self.columns.column(name or ""))

    def fields(self) -> list[Column]:
        """Those of `fields`, or the one of `field`; those that are unknown are noted."""
        if self.rule.field is not None:
            named = [("field", self.rule.field)]
        else:
            named = [(f"fields[{at}]", name) for at, name in enumerate(self.rule.fields)]
        found = [self.column(key, name) for key, name in named]
        return [column for column in found if column is not None]

    def bad(self, *parts: Expr, of: Iterable[Column]) -> Expr:
        """One of the parts holds, or, where the rule says so, one of the columns is NULL."""
        nulls = (
            [build.is_null(column) for column in of] if self.rule.null_handling == "fail" else []
        )
        return build.disjunction((*parts, *nulls))


def _required(low: Lowering) -> Expr | None:
    columns = low.fields()
    if low.faults:
        return None
    return build.disjunction([build.is_null(column) for column in columns])


def _range(low: Lowering) -> Expr | None:
    column = low.column("field", low.rule.field)
    if column is None:
        return None
    sides: list[tuple[str, Comparison, Limit]] = [
        ("min", "<", low.rule.min),
        ("max", ">", low.rule.max),
    ]
    parts = [_beyond(low, column, *side) for side in sides if side[2] is not None]
    found = [part for part in parts if part is not None]
    if low.faults or not low.attempt("max", lambda: _in_order(found)):
        return None
    return low.bad(*found, of=[column])


def _beyond(low: Lowering, column: Column, key: str, sign: Comparison, limit: Limit) -> Expr | None:
    return low.attempt(key, lambda: build.compare(sign, column, constant(limit)))


def _in_order(parts: list[Expr]) -> bool:
    limits = [
        p.right.value for p in parts if isinstance(p, Compare) and isinstance(p.right, Literal)
    ]
    times = [limit for limit in limits if isinstance(limit, date)]
    if len(times) == 2 and times[0] > times[1]:
        raise Refusal(f"max {times[1]} is below min {times[0]}", "Swap them.")
    return True


def _regex(low: Lowering) -> Expr | None:
    column, pattern = low.column("field", low.rule.field), low.rule.pattern or ""
    if column is None:
        return None
    matched = low.attempt(
        "pattern", lambda: call("regexp_like", (column, Literal(pattern, STRING)))
    )
    return None if matched is None else low.bad(build.negation(matched), of=[column])


def _freshness(low: Lowering) -> Expr | None:
    column = low.column("field", low.rule.field)
    if column is None:
        return None
    if not column.type.is_time:
        what, fix = f"`{column.name}` is {column.type}, not a time", "Declare it as TIMESTAMP(3)."
        low.faults.append(("field", ExprFault(what, "", fix, None)))
        return None
    age = low.rule.max_age_seconds or MAX_AGE_SECONDS
    if age >= MOST_AGE_SECONDS:
        what, fix = f"it could never match: no time is {age} seconds ago", "Write a smaller number."
        low.faults.append(("max_age_seconds", ExprFault(what, "", fix, None)))
        return None
    late = low.attempt("field", lambda: _older(low.columns, column, age))
    return None if late is None else low.bad(late, of=[column])


def _older(columns: RuleColumns, column: Column, seconds: int) -> Expr:
    now = build.batch_time(columns.types)
    return build.compare(">", call("seconds_between", (now, column)), constant(seconds))


def _cross_field(low: Lowering) -> Expr | None:
    left, right = low.column("left", low.rule.left), low.column("right", low.rule.right)
    sign = next(s for s in get_args(Comparison) if s == operator(low.rule.op or ""))
    if left is None or right is None:
        return None
    good = low.attempt("right", lambda: build.compare(sign, left, right))
    return None if good is None else low.bad(build.negation(good), of=[left, right])


def _listed(low: Lowering) -> tuple[Column, Expr] | None:
    column = low.column("field", low.rule.field)
    if column is None:
        return None
    values = list(_distinct(low.rule.values))
    found = low.attempt("values", lambda: build.is_in(column, [constant(v) for v in values]))
    return None if found is None else (column, found)


def _lookup_in(low: Lowering) -> Expr | None:
    found = _listed(low)
    return None if found is None else low.bad(build.negation(found[1]), of=[found[0]])


def _lookup_not_in(low: Lowering) -> Expr | None:
    found = _listed(low)
    return None if found is None else low.bad(found[1], of=[found[0]])


def _custom_sql(low: Lowering) -> Expr | None:
    text = low.rule.sql or ""
    return low.attempt("sql", lambda: low.columns.condition(text))


def _schema(low: Lowering) -> Expr | None:
    """The compiled source view gives these names of fields where such a rule is there."""
    names = (MISSING,) if low.rule.allow_unknown else (MISSING, EXTRA)
    there = [build.negation(build.is_null(Column(name, STRING))) for name in names]
    return build.disjunction(there)


_FORMS: dict[RuleType, Callable[[Lowering], Expr | None]] = {
    "required": _required,
    "range": _range,
    "threshold": _range,
    "regex": _regex,
    "timestamp_freshness": _freshness,
    "cross_field": _cross_field,
    "lookup_in": _lookup_in,
    "lookup_not_in": _lookup_not_in,
    "custom_sql": _custom_sql,
    "schema": _schema,
}


def constant(value: object) -> Literal:
    """A value of the declaration as a constant of the language."""
    if isinstance(value, bool):
        return Literal(value, BOOLEAN)
    if isinstance(value, int | float):
        found = build.number(repr(abs(value)))
        made = build.negative(found) if value < 0 else found
        return made if isinstance(made, Literal) else found
    return Literal(str(value), STRING)


def _distinct(values: Iterable[Constant]) -> Iterator[Constant]:
    """Each value once; true and 1 are two."""
    yield from {(type(value), value): value for value in values}.values()
