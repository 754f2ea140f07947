"""The syntax tree of the condition language: every node that a condition can have, as a frozen value.

The tree is a small core: short forms (`IF`, `NULLIF`, `IS TRUE`, unary minus, `abs` of a whole
number) are lowered to it when it is built, so that whatever reads it has few cases to handle.
`builder` makes the nodes and checks their types; constructing them directly skips those checks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal as OneOf
from typing import TypeAlias

from headgate.conditions.literals import LiteralValue
from headgate.declarations.types import BOOLEAN, TIMESTAMP_LTZ, SqlType

Comparison: TypeAlias = OneOf["=", "<>", "<", "<=", ">", ">=", "<=>"]
Operation: TypeAlias = OneOf["+", "-", "*", "/", "%"]

NULL = SqlType("NULL")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the row, by its exact name; of one source where there are two."""

    name: str
    type: SqlType
    source: str = ""

    @property
    def key(self) -> str:
        """What it is called among all columns: `t1.action`, or its name alone."""
        return f"{self.source}.{self.name}" if self.source else self.name


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant; of type NULL only until something beside it gives it a type."""

    value: LiteralValue
    type: SqlType


@dataclass(frozen=True, slots=True)
class BatchTime:
    """The time at which the batch was begun: the one clock there is, equal in every replay."""

    @property
    def type(self) -> SqlType:
        return TIMESTAMP_LTZ


@dataclass(frozen=True, slots=True)
class Predicate:
    """What is true, false or NULL."""

    @property
    def type(self) -> SqlType:
        return BOOLEAN


@dataclass(frozen=True, slots=True)
class Compare(Predicate):
    """Two values of agreeing types; `<=>` alone is never NULL."""

    operator: Comparison
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class And(Predicate):
    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Or(Predicate):
    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Not(Predicate):
    item: Expr


@dataclass(frozen=True, slots=True)
class IsNull(Predicate):
    item: Expr


@dataclass(frozen=True, slots=True)
class In(Predicate):
    item: Expr
    options: tuple[Literal, ...]


@dataclass(frozen=True, slots=True)
class Between(Predicate):
    item: Expr
    low: Expr
    high: Expr


@dataclass(frozen=True, slots=True)
class Like(Predicate):
    """`%` is any text, `_` any character, a backslash takes either literally."""

    item: Expr
    pattern: str


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """NULL where the exact result does not exist or does not fit."""

    operator: Operation
    left: Expr
    right: Expr
    type: SqlType


@dataclass(frozen=True, slots=True)
class Branch:
    when: Expr
    then: Expr


@dataclass(frozen=True, slots=True)
class Case:
    """The first branch whose condition holds, else the default."""

    branches: tuple[Branch, ...]
    default: Expr | None
    type: SqlType


@dataclass(frozen=True, slots=True)
class Cast:
    """NULL where the value has no counterpart in the type."""

    item: Expr
    type: SqlType


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the table in `functions`."""

    name: str
    arguments: tuple[Expr, ...]
    type: SqlType


Expr: TypeAlias = (
    Column
    | Literal
    | BatchTime
    | Compare
    | And
    | Or
    | Not
    | IsNull
    | In
    | Between
    | Like
    | Arithmetic
    | Case
    | Cast
    | Function
)


def children(expr: Expr) -> tuple[Expr, ...]:
    """The parts of one node, in the order in which they are written."""
    match expr:
        case Column() | Literal() | BatchTime():
            return ()
        case Compare() | Arithmetic():
            return (expr.left, expr.right)
        case And() | Or():
            return expr.items
        case Not() | IsNull() | Like() | Cast():
            return (expr.item,)
        case In():
            return (expr.item, *expr.options)
        case Between():
            return (expr.item, expr.low, expr.high)
        case Function():
            return expr.arguments
        case Case():
            parts = tuple(part for branch in expr.branches for part in (branch.when, branch.then))
            return parts if expr.default is None else (*parts, expr.default)


def walk(expr: Expr) -> Iterator[Expr]:
    """Every node, each before its parts."""
    waiting = [expr]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(children(node)))


def size(expr: Expr, known: dict[int, tuple[Expr, int]]) -> int:
    """How many nodes are written out; a part that stands in two places counts twice.

    `known` keeps what was counted, by identity, so that building a tree up costs no more than it.
    """
    found = known.get(id(expr))
    if found is None:
        found = expr, 1 + sum(size(child, known) for child in children(expr))
        known[id(expr)] = found
    return found[1]


def columns_of(expr: Expr) -> tuple[str, ...]:
    """The keys of the columns that are read, each once, in order of appearance."""
    return tuple(dict.fromkeys(node.key for node in walk(expr) if isinstance(node, Column)))


def mapped(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """The tree with each node changed, parts before what they are part of."""
    match expr:
        case Column() | Literal() | BatchTime():
            return change(expr)
        case Compare() | Arithmetic():
            left, right = mapped(expr.left, change), mapped(expr.right, change)
            return change(replace(expr, left=left, right=right))
        case And() | Or():
            return change(replace(expr, items=tuple(mapped(item, change) for item in expr.items)))
        case Not() | IsNull() | Like() | Cast() | In():
            return change(replace(expr, item=mapped(expr.item, change)))
        case Between():
            item, low, high = (mapped(part, change) for part in (expr.item, expr.low, expr.high))
            return change(Between(item, low, high))
        case Function():
            arguments = tuple(mapped(part, change) for part in expr.arguments)
            return change(replace(expr, arguments=arguments))
        case Case():
            branches = tuple(
                Branch(mapped(branch.when, change), mapped(branch.then, change))
                for branch in expr.branches
            )
            default = None if expr.default is None else mapped(expr.default, change)
            return change(replace(expr, branches=branches, default=default))
