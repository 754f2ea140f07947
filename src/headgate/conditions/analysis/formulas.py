"""Formulas over terms in two-valued logic: negation, disjunctive normal form, implication, coverage.

An atom is `the value of this term is in this set`, whose opposite is exact; so the three values of
SQL become two formulas, where a condition is true and where it is false. A box is a conjunction of
atoms and a formula is a list of boxes; where it would take more than `MOST`, nothing is known of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from headgate.conditions.analysis.terms import NULL_ALONE, Term, Values


@dataclass(frozen=True)
class Atom:
    term: Term
    values: Values


@dataclass(frozen=True)
class Both:
    items: tuple[Formula, ...]


@dataclass(frozen=True)
class Either:
    items: tuple[Formula, ...]


Formula: TypeAlias = Atom | Both | Either
ALWAYS = Both(())
NEVER = Either(())


@dataclass(frozen=True)
class Truth:
    """Where a condition is true, and where it is false."""

    true: Formula
    false: Formula

    @property
    def null(self) -> Formula:
        return Both((opposite(self.true), opposite(self.false)))

    def negated(self) -> Truth:
        return Truth(self.false, self.true)


def opposite(formula: Formula) -> Formula:
    """The rows on which the formula does not hold."""
    match formula:
        case Atom():
            return Atom(formula.term, formula.term.domain - formula.values)
        case Both():
            return Either(tuple(opposite(item) for item in formula.items))
        case Either():
            return Both(tuple(opposite(item) for item in formula.items))


def among(term: Term, values: Values) -> Truth:
    """True where the term is among the values, NULL where it is NULL."""
    rest = term.domain.known - values
    return Truth(Atom(term, values & term.domain.known), Atom(term, rest))


def certain(term: Term, values: Values) -> Truth:
    """True where the term is among the values, false elsewhere."""
    return Truth(Atom(term, values & term.domain), Atom(term, term.domain - values))


def is_null(term: Term) -> Truth:
    return certain(term, NULL_ALONE)


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


_MOST_LEFT = 64


@dataclass(frozen=True)
class Region:
    """The rows on which a condition holds, and those on which it does not; None: not known."""

    truth: Truth

    @cached_property
    def rows(self) -> list[Box] | None:
        return boxes(self.truth.true)

    @cached_property
    def rest(self) -> list[Box] | None:
        return boxes(opposite(self.truth.true))

    @property
    def is_never(self) -> bool:
        return self.rows == []

    @property
    def is_always(self) -> bool:
        return self.rest == []

    @property
    def is_usual(self) -> bool:
        """Whether it is known, and holds on some rows only as far as is known."""
        return bool(self.rows) and bool(self.rest)

    @cached_property
    def terms(self) -> frozenset[str]:
        return frozenset(term for box in self.rows or () for term in box)

    @cached_property
    def rest_terms(self) -> tuple[frozenset[str], ...]:
        return tuple(frozenset(box) for box in self.rest or ())


def implies(one: Region, other: Region) -> bool:
    """Whether the second holds wherever the first does."""
    if not one.rows or not other.rest:
        return False
    first = one.rows[0].keys()
    if any(first.isdisjoint(terms) for terms in other.rest_terms):
        return False
    return all(apart(box, rest) for box in one.rows for rest in other.rest)


def covering(one: Region, others: Sequence[tuple[int, Region]]) -> list[int]:
    """Which of the others together hold wherever `one` does; none where that is not known."""
    left, used = list(one.rows or ()), list[int]()
    for number, other in others:
        touched = [box for box in left if not all(apart(box, rows) for rows in other.rows or ())]
        if not touched or other.rest is None:
            continue
        untouched = [box for box in left if box not in touched]
        cut = [part for box in touched for rest in other.rest if (part := met(box, rest))]
        if len(cut) + len(untouched) > _MOST_LEFT:
            continue
        left = untouched + cut
        used.append(number)
        if not left:
            return used
    return []


class Index:
    """Finds conditions that speak of the same terms."""

    def __init__(self, regions: Sequence[Region]) -> None:
        self._by_term: dict[str, list[int]] = defaultdict(list)
        for number, region in enumerate(regions):
            if region.is_usual:
                for term in region.terms:
                    self._by_term[term].append(number)

    def near(self, region: Region) -> Iterator[int]:
        """The numbers of those that share a term, in order."""
        found = {number for term in region.terms for number in self._by_term[term]}
        return iter(sorted(found))
