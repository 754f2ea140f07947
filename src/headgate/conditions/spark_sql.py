"""Render a condition as readable Spark SQL that cannot raise on any row; which casts Spark allows.

The tables say which casts the language admits and which of them succeed for every value: those are
written CAST, all others try_cast. The same tree always gives the same text.
"""

from __future__ import annotations

from headgate.conditions.ast import (
    And,
    Arithmetic,
    BatchTime,
    Between,
    Case,
    Cast,
    Column,
    Compare,
    Expr,
    Function,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
)
from headgate.conditions.literals import spark_column, spark_literal
from headgate.declarations.types import BIGINT, SqlType

# Not here: what depends on how a double is printed, and what overflows for far-off years even in
# Spark's trying form (DATE to a time, one kind of time to the other).
_ADMITTED: dict[str, frozenset[str]] = {
    "STRING": frozenset(
        {"BOOLEAN", "INT", "BIGINT", "DOUBLE", "DECIMAL", "DATE", "TIMESTAMP", "TIMESTAMP_LTZ"}
    ),
    "BOOLEAN": frozenset({"STRING", "INT", "BIGINT"}),
    "INT": frozenset({"STRING", "BOOLEAN", "BIGINT", "DOUBLE", "DECIMAL"}),
    "BIGINT": frozenset({"STRING", "BOOLEAN", "INT", "DOUBLE", "DECIMAL"}),
    "DECIMAL": frozenset({"STRING", "INT", "BIGINT", "DOUBLE", "DECIMAL"}),
    "FLOAT": frozenset({"INT", "BIGINT", "DOUBLE", "DECIMAL"}),
    "DOUBLE": frozenset({"INT", "BIGINT", "DECIMAL"}),
    "DATE": frozenset({"STRING"}),
    "TIMESTAMP": frozenset({"STRING", "DATE"}),
    "TIMESTAMP_LTZ": frozenset({"STRING", "DATE"}),
}
_ALWAYS = frozenset(
    {("INT", "BIGINT"), ("INT", "DOUBLE"), ("BIGINT", "DOUBLE"), ("DECIMAL", "DOUBLE")}
    | {("FLOAT", "DOUBLE"), ("INT", "BOOLEAN"), ("BIGINT", "BOOLEAN")}
    | {("BOOLEAN", "INT"), ("BOOLEAN", "BIGINT")}
    | {("TIMESTAMP", "DATE"), ("TIMESTAMP_LTZ", "DATE")}
)
# The digits before the point that a whole number can have.
INTEGER_DIGITS = {"INT": 10, "BIGINT": 20}
# Beyond this scale the two ANSI modes print a small decimal differently (1E-7 or 0.0000001).
MAX_PRINTED_SCALE = 6
# A DOUBLE becomes a DECIMAL by way of its text, which from the 17th digit on differs between
# versions of Java.
SURE_DIGITS = 15


def is_admitted(source: SqlType, target: SqlType) -> bool:
    """Whether a cast between the two is part of the language."""
    if target.name not in _ADMITTED.get(source.name, frozenset()):
        return False
    if target.name == "DECIMAL" and source.name in {"FLOAT", "DOUBLE"}:
        return (target.precision or 0) <= SURE_DIGITS
    return target.name != "STRING" or (source.scale or 0) <= MAX_PRINTED_SCALE


def never_fails(source: SqlType, target: SqlType) -> bool:
    """Whether every value of `source` has a counterpart in `target`."""
    if target.name == "STRING" or (source.name, target.name) in _ALWAYS:
        return True
    if target.name != "DECIMAL":
        return source.name == target.name
    whole, scale = digits(source)
    room = (target.precision or 0) - (target.scale or 0)
    return whole is not None and whole <= room and scale <= (target.scale or 0)


def digits(kind: SqlType) -> tuple[int | None, int]:
    """Digits before and after the point; None before it when there is no bound."""
    if kind.name == "DECIMAL":
        return (kind.precision or 0) - (kind.scale or 0), kind.scale or 0
    return INTEGER_DIGITS.get(kind.name), 0


# The session variable that holds the batch's time, as it is written and as it is read.
BATCH_TIME = "session.batch_time"
# How tightly each form binds; an operand that binds less tightly than its place gets brackets.
_OR, _AND, _NOT, _PREDICATE, _SUM, _PRODUCT, _WHOLE = range(1, 8)
_TRYING = {
    "+": "try_add",
    "-": "try_subtract",
    "*": "try_multiply",
    "/": "try_divide",
    "%": "try_mod",
}


def to_spark(expr: Expr) -> str:
    """The expression as Spark SQL text; the same tree always gives the same text."""
    return _render(expr)[0]


def to_clauses(expr: Expr) -> list[str]:
    """The operands of the outermost AND or OR, all but the first of them behind that word."""
    if not isinstance(expr, And | Or):
        return [to_spark(expr)]
    word, least = ("AND", _NOT) if isinstance(expr, And) else ("OR", _AND)
    first, *others = (_at(item, least) for item in expr.items)
    return [first, *(f"{word} {item}" for item in others)]


def _render(expr: Expr) -> tuple[str, int]:
    match expr:
        case Column():
            return spark_column(expr.name, expr.source), _WHOLE
        case BatchTime():
            return BATCH_TIME, _WHOLE
        case Literal():
            suffix = "L" if expr.type == BIGINT and expr.value is not None else ""
            return spark_literal(expr.value) + suffix, _WHOLE
        case And() | Or():
            return " ".join(to_clauses(expr)), _AND if isinstance(expr, And) else _OR
        case Not():
            return _negated(expr.item)
        case Arithmetic():
            return _arithmetic(expr)
        case Case():
            return _case(expr), _WHOLE
        case Cast():
            return _cast(expr), _WHOLE
        case Function():
            return f"{expr.name}({_list(expr.arguments)})", _WHOLE
        case Compare() | IsNull() | In() | Between() | Like():
            return _predicate(expr, ""), _PREDICATE


def _at(expr: Expr, least: int) -> str:
    text, tightness = _render(expr)
    return text if tightness >= least else f"({text})"


def _list(items: tuple[Expr, ...]) -> str:
    return ", ".join(to_spark(item) for item in items)


def _predicate(expr: Compare | IsNull | In | Between | Like, no: str) -> str:
    match expr:
        case Compare():
            return f"{_at(expr.left, _SUM)} {expr.operator} {_at(expr.right, _SUM)}"
        case IsNull():
            return f"{_at(expr.item, _SUM)} IS {no}NULL"
        case In():
            return f"{_at(expr.item, _SUM)} {no}IN ({_list(expr.options)})"
        case Between():
            low, high = _at(expr.low, _SUM), _at(expr.high, _SUM)
            return f"{_at(expr.item, _SUM)} {no}BETWEEN {low} AND {high}"
        case Like():
            return f"{_at(expr.item, _SUM)} {no}LIKE {spark_literal(expr.pattern)}"


def _negated(expr: Expr) -> tuple[str, int]:
    if isinstance(expr, IsNull | In | Between | Like):
        return _predicate(expr, "NOT "), _PREDICATE
    return f"NOT {_at(expr, _WHOLE)}", _NOT


def _arithmetic(expr: Arithmetic) -> tuple[str, int]:
    # Floating point cannot overflow into an error and decimals are given room enough when the
    # tree is built; whole numbers, and whatever divides, need the trying form.
    if expr.operator in "/%" or expr.type.is_integral:
        return f"{_TRYING[expr.operator]}({_list((expr.left, expr.right))})", _WHOLE
    here = _PRODUCT if expr.operator == "*" else _SUM
    return f"{_at(expr.left, here)} {expr.operator} {_at(expr.right, here + 1)}", here


def _case(expr: Case) -> str:
    branches = " ".join(
        f"WHEN {to_spark(branch.when)} THEN {to_spark(branch.then)}" for branch in expr.branches
    )
    default = "" if expr.default is None else f" ELSE {to_spark(expr.default)}"
    return f"CASE {branches}{default} END"


def _cast(expr: Cast) -> str:
    # Spark's bare TIMESTAMP is the zoned one, ours is not: the long names mean one thing only.
    kind = "TIMESTAMP_LTZ" if expr.type.name == "TIMESTAMP_LTZ" else expr.type.spark
    word = "CAST" if never_fails(expr.item.type, expr.type) else "try_cast"
    return f"{word}({to_spark(expr.item)} AS {kind})"
