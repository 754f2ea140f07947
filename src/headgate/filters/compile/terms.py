"""A filter's condition cut in two: equalities that a join can find, and what is left to ask."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import prod

from headgate.conditions import builder as build
from headgate.conditions.ast import And, Column, Compare, Expr, Function, In, Literal
from headgate.conditions.spark import to_spark
from headgate.declarations.spec_types import STRING
from headgate.filters.compile.conditions import OP

# A filter whose lists multiply to more rows of keys than this keeps the later ones as questions.
MOST_ROWS = 256


@dataclass(frozen=True)
class Cut:
    """`terms` are texts of the event; an event can match only if they are one of the `rows`."""

    terms: tuple[Expr, ...]
    rows: tuple[tuple[str, ...], ...]
    rest: Expr | None


def cut(condition: Expr) -> Cut:
    """The equalities among the parts that must all hold, and the rest of them."""
    wanted: dict[str, tuple[Expr, frozenset[str]]] = {}
    rest: list[Expr] = []
    for part in _parts(condition):
        found = _equality(part)
        if found is None or not _joined(wanted, *found):
            rest.append(part)
    if wanted.keys() <= {to_spark(OP)}:
        # Every event has an operation: looked up by that alone, each would find every filter.
        return Cut((), (), condition)
    terms = [wanted[key] for key in sorted(wanted)]
    rows = tuple(product(*(sorted(values) for _, values in terms)))
    left = build.conjunction(rest) if rest else None
    return Cut(tuple(term for term, _ in terms), rows, left)


def _parts(condition: Expr) -> Iterator[Expr]:
    if not isinstance(condition, And):
        yield condition
        return
    for item in condition.items:
        yield from _parts(item)


def _joined(
    wanted: dict[str, tuple[Expr, frozenset[str]]], term: Expr, values: frozenset[str]
) -> bool:
    """Whether the values could be taken in; of one term only what all its equalities allow is left."""
    key = to_spark(term)
    if key in wanted:
        wanted[key] = term, wanted[key][1] & values
        return True
    if prod(len(known) for _, known in wanted.values()) * len(values) > MOST_ROWS:
        return False
    wanted[key] = term, values
    return True


def _equality(part: Expr) -> tuple[Expr, frozenset[str]] | None:
    match part:
        case Compare(operator="=", left=left, right=Literal(value=str(value))) if _is_text(left):
            return left, frozenset({value})
        case In(item=item, options=options) if _is_text(item):
            return item, frozenset(str(option.value) for option in options)
        case _:
            return None


def _is_text(item: Expr) -> bool:
    return item.type == STRING and isinstance(item, Column | Function)
