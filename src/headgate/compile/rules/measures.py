"""Aggregates held against the columns of their table."""

from __future__ import annotations

from dataclasses import replace

from headgate.compile.rules.columns import RuleColumns
from headgate.expr.faults import ExprError
from headgate.expr.tree import Column
from headgate.spec.refusal import Refusal
from headgate.spec.ruleset import Aggregate, Measure

_OF_NUMBERS: tuple[Measure, ...] = ("sum", "quantile")


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
