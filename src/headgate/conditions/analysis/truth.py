"""A condition in two-valued logic: on which rows it is true, and on which it is false.

The rest is where it is NULL. Both are built from atoms, `the value of this term is in this set`,
whose opposite is exact; so the three values of SQL need no rules of their own afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from headgate.conditions.analysis.analysis_terms import Term
from headgate.conditions.analysis.values import NULL_ALONE, Values


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
