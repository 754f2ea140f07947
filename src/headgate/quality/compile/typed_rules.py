"""Typed rules as conditions, and aggregates checked against the columns they measure.

A condition matches the rows that are bad. How NULL counts is the rule's `null_handling`: under `fail` a NULL
in a field is bad too, else it is not; only `required` asks for NULL itself. An aggregate keeps its form; its
columns, types and limits are checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import date
from typing import TypeVar, get_args

from headgate.conditions import builder
from headgate.conditions.ast import Column, Compare, Comparison, Expr, Literal
from headgate.conditions.functions import call
from headgate.conditions.grammar import ExprError, ExprFault
from headgate.declarations.errors import Refusal
from headgate.declarations.types import BOOLEAN, STRING, SqlType
from headgate.quality.compile.columns import RuleColumns
from headgate.quality.spec.rule_checks import operator
from headgate.quality.spec.rule_set import (
    Aggregate,
    Constant,
    Limit,
    Measure,
    Rule,
    RuleSource,
    RuleType,
)

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
            [builder.is_null(column) for column in of] if self.rule.null_handling == "fail" else []
        )
        return builder.disjunction((*parts, *nulls))


def _required(low: Lowering) -> Expr | None:
    columns = low.fields()
    if low.faults:
        return None
    return builder.disjunction([builder.is_null(column) for column in columns])


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
    return low.attempt(key, lambda: builder.compare(sign, column, constant(limit)))


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
    return None if matched is None else low.bad(builder.negation(matched), of=[column])


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
    now = builder.batch_time(columns.types)
    return builder.compare(">", call("seconds_between", (now, column)), constant(seconds))


def _cross_field(low: Lowering) -> Expr | None:
    left, right = low.column("left", low.rule.left), low.column("right", low.rule.right)
    sign = next(s for s in get_args(Comparison) if s == operator(low.rule.op or ""))
    if left is None or right is None:
        return None
    good = low.attempt("right", lambda: builder.compare(sign, left, right))
    return None if good is None else low.bad(builder.negation(good), of=[left, right])


def _listed(low: Lowering) -> tuple[Column, Expr] | None:
    column = low.column("field", low.rule.field)
    if column is None:
        return None
    values = list(_distinct(low.rule.values))
    found = low.attempt("values", lambda: builder.is_in(column, [constant(v) for v in values]))
    return None if found is None else (column, found)


def _lookup_in(low: Lowering) -> Expr | None:
    found = _listed(low)
    return None if found is None else low.bad(builder.negation(found[1]), of=[found[0]])


def _lookup_not_in(low: Lowering) -> Expr | None:
    found = _listed(low)
    return None if found is None else low.bad(found[1], of=[found[0]])


def _custom_sql(low: Lowering) -> Expr | None:
    text = low.rule.sql or ""
    return low.attempt("sql", lambda: low.columns.condition(text))


def _schema(low: Lowering) -> Expr | None:
    """The compiled source view gives these names of fields where such a rule is there."""
    names = (MISSING,) if low.rule.allow_unknown else (MISSING, EXTRA)
    there = [builder.negation(builder.is_null(Column(name, STRING))) for name in names]
    return builder.disjunction(there)


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
        found = builder.number(repr(abs(value)))
        made = builder.negative(found) if value < 0 else found
        return made if isinstance(made, Literal) else found
    return Literal(str(value), STRING)


def _distinct(values: Iterable[Constant]) -> Iterator[Constant]:
    """Each value once; true and 1 are two."""
    yield from {(type(value), value): value for value in values}.values()


_OF_NUMBERS: tuple[Measure, ...] = ("sum", "quantile")
# Their values are values of rows, or tell one where a window or a group has few.
_TELLING: tuple[Measure, ...] = ("sum", "quantile", "freshness", "distinct_count")
_BITS = {"INT": 31, "BIGINT": 63}


class KeyRefusal(Exception):
    """Why an aggregate cannot be accepted, and the key that it is about."""

    def __init__(self, key: str, refusal: Refusal) -> None:
        super().__init__(refusal.what)
        self.key = key
        self.refusal = refusal


def checked_aggregate(columns: RuleColumns, aggregate: Aggregate) -> Aggregate:
    """The aggregate with its columns by their plain names; a KeyRefusal where one does not fit."""
    if columns.table.is_pair:
        what = "an aggregate measures one source, and this table has two"
        fix = "Declare a table of its own over the topic."
        raise KeyRefusal("measure", Refusal(what, fix))
    field = None if aggregate.field is None else _column(columns, "field", aggregate.field)
    if field is not None:
        _check_type(aggregate, field)
    _check_sensitive(columns.table.first, aggregate, field)
    groups = [
        _column(columns, f"group_by[{at}]", name) for at, name in enumerate(aggregate.group_by)
    ]
    for at, group in enumerate(groups):
        if group.name in columns.table.first.sensitive:
            what, fix = f"`{group.name}` is sensitive, and groups are shown", "Group by another."
            raise KeyRefusal(f"group_by[{at}]", Refusal(what, fix))
    return replace(
        aggregate,
        field=field.name if field else None,
        group_by=tuple(group.name for group in groups),
    )


def _column(columns: RuleColumns, key: str, name: str) -> Column:
    try:
        return columns.column(name)
    except Refusal as refusal:
        raise KeyRefusal(key, refusal) from None
    except ExprError as error:
        fault = error.faults[0]
        raise KeyRefusal(key, Refusal(fault.what, fault.fix)) from None


def _check_type(aggregate: Aggregate, column: Column) -> None:
    measure = aggregate.measure
    if measure in _OF_NUMBERS and not column.type.is_numeric:
        what = f"{measure} needs numbers, and `{column.name}` is {column.type}"
        raise KeyRefusal("field", Refusal(what, "Name a column of numbers."))
    if measure == "freshness" and not column.type.is_time:
        what = f"freshness needs a time, and `{column.name}` is {column.type}"
        raise KeyRefusal("field", Refusal(what, "Name a TIMESTAMP column."))


def _check_sensitive(source: RuleSource, aggregate: Aggregate, column: Column | None) -> None:
    """What is measured goes to every sink, where nothing masks it."""
    measured = column.name if column else source.event_time
    if aggregate.measure in _TELLING and measured in source.sensitive:
        what = f"`{measured}` is sensitive, and {aggregate.measure} tells its values to every sink"
        fix = "Measure another column, or null_rate."
        raise KeyRefusal("field" if column else "measure", Refusal(what, fix))


def idle_limits(columns: RuleColumns, aggregate: Aggregate) -> list[tuple[str, str]]:
    """The limits that no value can pass, each with why."""
    low, high, words = _span(columns, aggregate)
    found: list[tuple[str, str]] = []
    if aggregate.min is not None and low is not None and aggregate.min <= low:
        found.append(("min", f"{words} is never below {low:,g}"))
    if aggregate.max is not None and high is not None and aggregate.max >= high:
        found.append(("max", f"{words} is never above {high:,g}"))
    return found


def _span(columns: RuleColumns, aggregate: Aggregate) -> tuple[float | None, float | None, str]:
    """Between what the measure's values are, and what it is of."""
    match aggregate.measure:
        case "row_count":
            # A window, or a group of one, is there because of its rows.
            return 1, None, "a window without rows has no verdict, and the number of others"
        case "null_rate":
            return 0, 1, "a share"
        case "distinct_count":
            return 0, None, "a number of values"
        case "freshness":
            return -MOST_AGE_SECONDS, MOST_AGE_SECONDS, "an age in seconds"
        case "quantile" if aggregate.field is not None:
            most = _greatest(columns.column(aggregate.field).type)
            return (None, None, "") if most is None else (-most, most, f"`{aggregate.field}`")
        case _:
            return None, None, ""


def _greatest(kind: SqlType) -> float | None:
    if kind.name in _BITS:
        return float(2 ** _BITS[kind.name] - 1)
    return (
        float(10 ** ((kind.precision or 0) - (kind.scale or 0))) if kind.scale is not None else None
    )
