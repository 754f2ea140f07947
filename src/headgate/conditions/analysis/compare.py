"""Conditions against each other: which implies which, and what earlier ones leave over."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from headgate.conditions.analysis.boxes import Box, apart, boxes, met
from headgate.conditions.analysis.truth import Truth, opposite

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
