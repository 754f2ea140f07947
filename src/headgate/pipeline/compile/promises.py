"""What a dataset's quality filters promise of its silver columns, as far as one column goes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from headgate.conditions import ast as tree
from headgate.conditions.ast import Expr
from headgate.conditions.parser import parse_condition, parse_value
from headgate.declarations.spec_columns import RECORD_TIME, Column
from headgate.pipeline.spec import Dataset


@dataclass(frozen=True)
class Promise:
    """Of one column: never NULL, above zero, at least zero, one of these values."""

    not_null: bool = False
    positive: bool = False
    or_zero: bool = False
    values: tuple[str | int, ...] = ()

    def __and__(self, other: Promise) -> Promise:
        return Promise(
            self.not_null or other.not_null,
            self.positive or other.positive,
            self.or_zero or other.or_zero,
            self.values or other.values,
        )


def promises(dataset: Dataset) -> dict[str, Promise]:
    """By the column's name in bronze; a row that fits no silver type is filtered, so all hold there."""
    columns = {column.name: column for column in dataset.columns}
    found = {RECORD_TIME: Promise(not_null=True)}
    for text in dataset.quality_filters:
        for name, promise in _of(parse_condition(text, dataset.bronze_types)):
            if name in columns:
                found[name] = found.get(name, Promise()) & _after_cast(columns[name], promise)
    return found


def date_is_never_null(dataset: Dataset, found: dict[str, Promise]) -> bool:
    """Whether the partition date follows from columns that are never NULL."""
    day = parse_value(dataset.partition_date_expr, dataset.bronze_types)
    item = day.item if isinstance(day, tree.Cast) else day
    if not isinstance(item, tree.Column) or not (item.type.is_time or item.type.name == "DATE"):
        return False
    return found.get(item.name, Promise()).not_null


def _of(condition: Expr) -> Iterator[tuple[str, Promise]]:
    match condition:
        case tree.And(items=items):
            for item in items:
                yield from _of(item)
        case tree.Or(items=(tree.IsNull(item=tree.Column(name=name)), other)):
            yield from ((n, replace(p, not_null=False)) for n, p in _of(other) if n == name)
        case tree.Not(item=tree.IsNull(item=tree.Column(name=name))):
            yield name, Promise(not_null=True)
        case tree.Between(item=tree.Column(name=name), low=tree.Literal(value=low)):
            yield name, _above(low, strictly=False)
        case tree.In(item=tree.Column(name=name), options=options):
            yield name, Promise(not_null=True, values=_values(options))
        case tree.Compare(left=tree.Column(name=name), right=tree.Literal(value=value)):
            yield name, _compared(condition.operator, value)
        case _:
            pass


def _compared(operator: str, value: object) -> Promise:
    if operator == "<=>":
        return Promise(not_null=value is not None)
    above = operator in (">", ">=")
    return _above(value, strictly=operator == ">") if above else Promise(not_null=True)


def _above(value: object, *, strictly: bool) -> Promise:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return Promise(not_null=True)
    positive = value > 0 or (strictly and value == 0)
    return Promise(not_null=True, positive=positive, or_zero=value == 0 and not strictly)


def _values(options: tuple[tree.Literal, ...]) -> tuple[str | int, ...]:
    """All of them or none; dbt would read a quote or a brace in a text as its own."""
    values = [option.value for option in options]
    plain = [v for v in values if isinstance(v, str | int) and not isinstance(v, bool)]
    odd = any(mark in str(value) for value in plain for mark in "'{")
    return tuple(plain) if len(plain) == len(values) and not odd else ()


def _after_cast(column: Column, promise: Promise) -> Promise:
    """Rounding keeps the order but may make a small number zero; text may come out otherwise."""
    before, after = column.bronze_type, column.silver_type
    if before == after or (before.is_integral and after.is_integral):
        return promise
    if not after.is_numeric:
        return Promise(not_null=promise.not_null)
    rounded = promise.positive or promise.or_zero
    return replace(promise, positive=False, or_zero=rounded, values=())
