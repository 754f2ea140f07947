"""Builds the syntax tree of the conditions of a filter's document; refuses patterns and times it cannot compile.

A column is text, `__ts_ms` a BIGINT. A path into the JSON column is a function of it: `json_text` is the text
of a value, compared as text; `json_value` is the value itself in some text, which is asked only whether it is
there, or what it is as a number, a boolean or a time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from headgate.conditions import builder as build
from headgate.conditions.ast import Column, Comparison, Expr, Function, Literal
from headgate.conditions.functions import call
from headgate.conditions.regex.pattern import analysis_cost
from headgate.conditions.type_coercion import read_time
from headgate.declarations.errors import Refusal
from headgate.declarations.types import BIGINT, BOOLEAN, DOUBLE, STRING, TIMESTAMP_LTZ
from headgate.filters.spec import (
    NUMBER_COLUMN,
    AllOf,
    AnyCondition,
    AnyOf,
    Condition,
    Filter,
    NotOf,
    Scalar,
    ValueType,
)

TEXT, VALUE = "json_text", "json_value"
OP = Column("__op", STRING)
_TYPES = {"number": DOUBLE, "boolean": BOOLEAN, "timestamp": TIMESTAMP_LTZ}
_COMPARISONS: dict[str, Comparison] = {
    "equals": "=",
    "greaterThan": ">",
    "greaterThanOrEqual": ">=",
    "lessThan": "<",
    "lessThanOrEqual": "<=",
}
# Steps of analysis for all patterns of one filter: about a second. 500 usual ones stay far below.
MAX_PATTERN_COST = 4_000_000
Made = TypeVar("Made")


@dataclass(frozen=True)
class ConditionFault:
    """`pointer` is the JSON pointer of what is wrong."""

    pointer: str
    what: str
    fix: str


class ConditionsError(ValueError):
    """All faults of a filter's conditions that only the language can see."""

    def __init__(self, faults: Sequence[ConditionFault]) -> None:
        super().__init__("; ".join(f"{fault.pointer}: {fault.what}" for fault in faults))
        self.faults = tuple(faults)


def conditions_of(declared: Filter) -> Expr:
    """Where the filter's own conditions hold, its `ops` left aside."""
    reader = _Reader()
    parts = reader.parts("/conditions", declared.conditions)
    if reader.faults:
        raise ConditionsError(reader.faults)
    return (
        build.conjunction(parts) if declared.condition_logic == "AND" else build.disjunction(parts)
    )


def condition_of(item: AnyCondition) -> Expr:
    """One condition or group of a filter as a tree."""
    reader = _Reader()
    condition = reader.read("", item)
    if condition is None:
        raise ConditionsError(reader.faults)
    return condition


def ops_of(declared: Filter) -> Expr:
    """Where the event is one of the changes that pass."""
    ops = [Literal(op, STRING) for op in sorted(set(declared.ops), key="crud".index)]
    return build.compare("=", OP, ops[0]) if len(ops) == 1 else build.is_in(OP, ops)


def field_of(name: str, kind: ValueType) -> Expr:
    """The value of a field as it is compared at that type."""
    column, path = split(name)
    if name == NUMBER_COLUMN:
        return Column(name, BIGINT)
    text: Expr = Column(column, STRING)
    if path:
        text = Function(TEXT if kind == "string" else VALUE, (text, Literal(path, STRING)), STRING)
    return text if kind == "string" else build.cast(text, _TYPES[kind])


def split(name: str) -> tuple[str, str]:
    """The column, and the path into it: `header_data.a[0]` is `$.a[0]` of header_data."""
    column = re.split(r"[.\[]", name, maxsplit=1)[0]
    rest = name[len(column) :]
    return column, f"${rest}" if rest else ""


@dataclass
class _Reader:
    faults: list[ConditionFault] = field(default_factory=list[ConditionFault])
    pattern_cost: int = 0

    def parts(self, pointer: str, items: Sequence[AnyCondition]) -> list[Expr]:
        found = [self.read(f"{pointer}/{at}", item) for at, item in enumerate(items)]
        return [part for part in found if part is not None]

    def read(self, pointer: str, item: AnyCondition) -> Expr | None:
        match item:
            case AllOf():
                parts = self.parts(f"{pointer}/all", item.all)
                return build.conjunction(parts) if parts else None
            case AnyOf():
                parts = self.parts(f"{pointer}/any", item.any)
                return build.disjunction(parts) if parts else None
            case NotOf():
                part = self.read(f"{pointer}/not", item.not_)
                return None if part is None else build.negation(part)
            case Condition():
                return self._condition(pointer, item)

    def _condition(self, pointer: str, item: Condition) -> Expr | None:
        match item.operator:
            case "isNull" | "isNotNull":
                there = build.is_null(_presence(item.field))
                return there if item.operator == "isNull" else build.negation(there)
            case "matches":
                return self._attempt(f"{pointer}/value", lambda: self._matches(item))
            case "in" | "notIn":
                return self._attempt(f"{pointer}/values", lambda: _membership(item))
            case "between":
                return self._attempt(f"{pointer}/min", lambda: _between(item))
            case _:
                sign = _COMPARISONS[item.operator]
                return self._attempt(f"{pointer}/value", lambda: _compared(sign, item))

    def _matches(self, item: Condition) -> Expr | None:
        """The pattern's condition; once the budget is used up no further pattern is analysed."""
        if self.pattern_cost > MAX_PATTERN_COST:
            return None  # the pattern before has the fault
        if isinstance(item.value, str):
            self.pattern_cost += analysis_cost(item.value)
        if self.pattern_cost > MAX_PATTERN_COST:
            raise Refusal(
                "the patterns of this filter together are too long to be checked",
                "Write fewer or shorter patterns, `in` for a list of texts, or several filters.",
            )
        return _matches(item)

    def _attempt(self, pointer: str, make: Callable[[], Made]) -> Made | None:
        try:
            return make()
        except Refusal as refusal:
            self.faults.append(ConditionFault(pointer, refusal.what, refusal.fix))
        return None


def _presence(name: str) -> Expr:
    column, path = split(name)
    if not path:
        return field_of(name, "string")
    return Function(VALUE, (Column(column, STRING), Literal(path, STRING)), STRING)


def _kind(item: Condition) -> ValueType:
    return "number" if item.field == NUMBER_COLUMN else item.value_type


def _compared(sign: Comparison, item: Condition) -> Expr:
    kind = _kind(item)
    return build.compare(sign, field_of(item.field, kind), _constant(item, item.value))


def _membership(item: Condition) -> Expr:
    options = [_constant(item, value) for value in dict.fromkeys(item.values)]
    found = build.is_in(field_of(item.field, _kind(item)), options)
    return build.negation(found) if item.operator == "notIn" else found


def _between(item: Condition) -> Expr:
    low, high = _constant(item, item.min), _constant(item, item.max)
    return build.between(field_of(item.field, _kind(item)), low, high)


def _matches(item: Condition) -> Expr:
    return call("regexp_like", (field_of(item.field, "string"), _constant(item, item.value)))


def _constant(item: Condition, value: Scalar | None) -> Expr:
    match _kind(item):
        case "number" if isinstance(value, int) and item.field == NUMBER_COLUMN:
            return Literal(value, BIGINT)
        case "number" if isinstance(value, int | float):
            return Literal(float(value), DOUBLE)
        case "boolean" if isinstance(value, bool):
            return Literal(value, BOOLEAN)
        case "timestamp" if isinstance(value, str):
            return read_time(value, TIMESTAMP_LTZ)
        case "string" if isinstance(value, str):
            return Literal(value, STRING)
        case _:
            raise Refusal("the value does not fit its valueType", "Write another value.")
