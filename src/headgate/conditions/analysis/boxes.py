"""Formulas as boxes: each says of some terms which values they have; the formula is any of them.

Sizes are bounded. Where a formula would take more boxes than `MOST`, nothing is known of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from headgate.conditions.analysis.analysis_terms import Term
from headgate.conditions.analysis.truth import Atom, Both, Formula
from headgate.conditions.analysis.values import Values

MOST = 128

Box: TypeAlias = Mapping[str, Values]


def boxes(formula: Formula) -> list[Box] | None:
    """The boxes that hold a row on which the formula holds, none of them empty; None: too many."""
    match formula:
        case Atom():
            box = _of_atom(formula)
            return [] if box is None else [box]
        case Both():
            return _of_all(formula.items)
        case _:
            return _of_any(formula.items)


def met(one: Box, other: Box) -> Box | None:
    """The rows in both boxes; None where there are none."""
    if len(one) < len(other):
        one, other = other, one
    result = dict(one)
    for term, values in other.items():
        mine = result.get(term)
        shared = values if mine is None else mine & values
        if not shared:
            return None
        result[term] = shared
    return result


def apart(one: Box, other: Box) -> bool:
    """Whether no row is in both."""
    if len(one) > len(other):
        one, other = other, one
    for term, values in one.items():
        theirs = other.get(term)
        if theirs is not None and not values & theirs:
            return True
    return False


def _of_atom(atom: Atom) -> Box | None:
    if not atom.values:
        return None
    box: dict[str, Values] = {atom.term.key: atom.values}
    if atom.values <= atom.term.settled:
        for parent in _ancestors(atom.term):
            box[parent.key] = box.get(parent.key, parent.domain) & parent.domain.known
    if all(box.values()):
        return box
    return None


def _ancestors(term: Term) -> list[Term]:
    return [found for parent in term.parents for found in (parent, *_ancestors(parent))]


def _of_all(items: Sequence[Formula]) -> list[Box] | None:
    found: list[Box] = [{}]
    for item in items:
        more = boxes(item)
        if more is None:
            return None
        found = [both for one in found for two in more if (both := met(one, two)) is not None]
        if len(found) > MOST:
            return None
    return found


def _of_any(items: Sequence[Formula]) -> list[Box] | None:
    found: list[Box] = []
    for item in items:
        more = boxes(item)
        if more is None:
            return None
        found += more
        if len(found) > MOST:
            return None
    return _fewer(found)


def _fewer(found: list[Box]) -> list[Box]:
    """Boxes over one and the same term as one."""
    singles: dict[str, Values] = {}
    others: list[Box] = []
    for box in found:
        if len(box) == 1:
            ((term, values),) = box.items()
            singles[term] = singles[term] | values if term in singles else values
        else:
            others.append(box)
    return [*({term: values} for term, values in singles.items()), *others]
