"""A filter as Flink SQL for Confluent Cloud: the same tree, written as the documents write it.

Columns come first, then the check of the operation, then paths into the JSON column.
"""

from __future__ import annotations

from headgate.compile.filters.compile import SENT
from headgate.expr.json_conditions import conditions_of, ops_of
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
    walk,
)
from headgate.spec.filter import Filter
from headgate.spec.refusal import Refusal

_TYPES = {"TIMESTAMP_LTZ": "TIMESTAMP_LTZ(6)"}
_TIME_PATTERN = "yyyy-MM-dd HH:mm:ss.SSSSSS"
_LOOSE, _NEGATED, _TIGHT = range(3)


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
