"""Aggregates held against the columns of their table."""

from __future__ import annotations

from dataclasses import replace

from headgate.conditions.ast import Column
from headgate.conditions.faults import ExprError
from headgate.declarations.refusal import Refusal
from headgate.declarations.spec_types import SqlType
from headgate.quality.compile.rules_columns import RuleColumns
from headgate.quality.compile.typed import MOST_AGE_SECONDS
from headgate.quality.spec.rule_set import Aggregate, Measure, RuleSource

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
