"""Compiles a filter to Flink SQL for Confluent Cloud, in the layout of the documents.

Columns come first, then the check of the operation, then paths into the JSON column. Some conditions mean
something else in Flink, whatever is written: `flink_faults` finds them, and such a filter is not deployed there.
They are rendered all the same, so that what an earlier release deployed is recognised by its text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from headgate.conditions.ast import (
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
    walk,
)
from headgate.declarations.errors import Refusal
from headgate.errors import Fault
from headgate.filters.compile.conditions import conditions_of, ops_of, split
from headgate.filters.compile.spark_sql import SENT
from headgate.filters.loader import BODY
from headgate.filters.spec import AllOf, AnyCondition, AnyOf, Condition, Filter, NotOf

_TYPES = {"TIMESTAMP_LTZ": "TIMESTAMP_LTZ(6)"}
_TIME_PATTERN = "yyyy-MM-dd HH:mm:ss.SSSSSS"
_LOOSE, _NEGATED, _TIGHT = range(3)
# What could be the text of a JSON number: Flink writes 1000.00 and 1e3 otherwise than Spark does.
_NUMERIC = re.compile(r"[-+]?[0-9.][0-9.eE+-]*")
_ON_ENGINE = "Deploy it to the engine, or ask something else."


def flink_faults(declared: Filter) -> tuple[Fault, ...]:
    """The conditions that Flink would judge otherwise than filters.md says, each with the reason."""
    found = _faults_in("/conditions", declared.conditions, negated=False)
    return tuple(Fault(BODY, None, pointer, what, _ON_ENGINE) for pointer, what in found)


def _faults_in(
    pointer: str, items: tuple[AnyCondition, ...], *, negated: bool
) -> Iterator[tuple[str, str]]:
    for at, item in enumerate(items):
        yield from _fault_of(f"{pointer}/{at}", item, negated=negated)


def _fault_of(pointer: str, item: AnyCondition, *, negated: bool) -> Iterator[tuple[str, str]]:
    match item:
        case AllOf():
            yield from _faults_in(f"{pointer}/all", item.all, negated=negated)
        case AnyOf():
            yield from _faults_in(f"{pointer}/any", item.any, negated=negated)
        case NotOf():
            yield from _fault_of(f"{pointer}/not", item.not_, negated=not negated)
        case Condition():
            if reason := _difference(item, negated=negated):
                yield pointer, reason


def _difference(item: Condition, *, negated: bool) -> str:
    """Why Flink judges this condition otherwise; empty when it does not."""
    if item.operator in ("isNull", "isNotNull"):
        is_path = bool(split(item.field)[1])
        return "Flink takes an object or a list for null (JSON_VALUE)" if is_path else ""
    if item.value_type == "timestamp":
        return "Flink reads no time with a T or a zone in it: it would match nothing"
    if not split(item.field)[1] or item.value_type != "string":
        return ""
    if item.operator not in ("equals", "in"):
        return f"Flink has other texts for numbers, which `{item.operator}` would tell apart"
    if negated:
        return "Flink has a text for numbers with an exponent, for which the opposite would hold"
    values = (item.value,) if item.operator == "equals" else item.values
    odd = next((value for value in values if _NUMERIC.fullmatch(str(value))), None)
    return "" if odd is None else f"`{odd}` may be a number, and Flink has other texts for numbers"


def flink_statements(declared: Filter) -> tuple[str, str]:
    """The sink table and the insert, each with its comment, as they are sent."""
    return _sink(declared), _insert(declared)


def flink_sql(declared: Filter) -> str:
    """Both statements as one text."""
    return "\n\n".join(flink_statements(declared)) + "\n"


def _sink(declared: Filter) -> str:
    columns = ",\n".join(f"    `{name}` STRING" for name in SENT)
    return (
        "-- Sink Table\n"
        f"CREATE TABLE `{declared.output_topic}` (\n"
        f"    `key` BYTES,\n{columns}\n"
        ") WITH (\n    'connector' = 'confluent',\n    'value.format' = 'json-registry'\n);"
    )


def _insert(declared: Filter) -> str:
    first, rest = (", ".join(f"`{name}`" for name in part) for part in (SENT[:4], SENT[4:]))
    # The blanks at the ends of lines are the documents' own.
    return (
        "-- INSERT Statement with JSON path extraction\n"
        f"INSERT INTO `{declared.output_topic}`\n"
        "SELECT \n    CAST(`id` AS BYTES) AS `key`,\n"
        f"    {first}, \n    {rest}\n"
        f"FROM `{declared.source}`\n"
        f"WHERE {_where(declared)};"
    )


def _where(declared: Filter) -> str:
    own = conditions_of(declared)
    parts = list(own.items) if isinstance(own, And) else [own]
    columns = [part for part in parts if not _reads_json(part)]
    paths = [part for part in parts if _reads_json(part)]
    texts = [_at(part, _NEGATED) for part in (*columns, ops_of(declared), *paths)]
    lines = [texts[0] + (" " if len(texts) > 1 else ""), *texts[1:]]
    return "\n  AND ".join(lines)


def _reads_json(part: Expr) -> bool:
    return any(isinstance(node, Function) and node.name.startswith("json_") for node in walk(part))


def _at(expr: Expr, least: int) -> str:
    text, tightness = _render(expr)
    return text if tightness >= least else f"({text})"


def _render(expr: Expr) -> tuple[str, int]:
    match expr:
        case Column():
            return f"`{expr.name}`", _TIGHT
        case Literal():
            return _literal(expr), _TIGHT
        case And():
            return " AND ".join(_at(item, _NEGATED) for item in expr.items), _LOOSE
        case Or():
            return " OR ".join(_at(item, _NEGATED) for item in expr.items), _LOOSE
        case Not():
            return _negated(expr.item)
        case _:
            return _simple(expr, ""), _TIGHT


def _negated(item: Expr) -> tuple[str, int]:
    if isinstance(item, IsNull | In | Between):
        return _simple(item, "NOT "), _TIGHT
    return f"NOT ({_render(item)[0]})", _NEGATED


def _simple(expr: Expr, no: str) -> str:
    match expr:
        case Compare():
            return f"{_at(expr.left, _TIGHT)} {expr.operator} {_at(expr.right, _TIGHT)}"
        case IsNull():
            return f"{_at(expr.item, _TIGHT)} IS {no}NULL"
        case In():
            options = ", ".join(_literal(option) for option in expr.options)
            return f"{_at(expr.item, _TIGHT)} {no}IN ({options})"
        case Between():
            low, high = _at(expr.low, _TIGHT), _at(expr.high, _TIGHT)
            return f"{_at(expr.item, _TIGHT)} {no}BETWEEN {low} AND {high}"
        case Cast():
            kind = _TYPES.get(expr.type.name, expr.type.name)
            return f"TRY_CAST({_at(_unformed(expr.item), _TIGHT)} AS {kind})"
        case Function():
            return _function(expr)
        case _:
            raise Refusal(f"{type(expr).__name__} is no Flink SQL", "Use another operator.")


def _unformed(item: Expr) -> Expr:
    """The text itself: that it is in a form which Spark reads safely is no matter to Flink."""
    return item.branches[0].then if isinstance(item, Case) else item


def _function(expr: Function) -> str:
    first, second = (_at(argument, _TIGHT) for argument in expr.arguments)
    if expr.name == "regexp_like":
        return f"REGEXP({first}, {second})"
    return f"JSON_VALUE({first}, {second})"


def _literal(literal: Literal) -> str:
    match literal.value:
        case bool():
            return "TRUE" if literal.value else "FALSE"
        case str():
            return "'" + literal.value.replace("'", "''") + "'"
        case float() if literal.value.is_integer() and abs(literal.value) < 1e15:
            return str(int(literal.value))
        case int() | float():
            return str(literal.value)
        case None:
            return "NULL"
        case _:
            return f"TO_TIMESTAMP_LTZ('{literal.value:%Y-%m-%d %H:%M:%S.%f}', '{_TIME_PATTERN}')"
