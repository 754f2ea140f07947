"""A pattern as a tree of sequences, choices and repetitions of character sets.

Character sets are ranges of code points without surrogates. Positions count the pattern's characters
from 1; equality ignores them. `PatternRefusal` names the position that leaves the safe subset.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TypeAlias

from headgate.declarations.errors import Refusal

LAST = 0x10FFFF
# Half of a surrogate pair is no character of any text, in Spark as in Python.
_SURROGATES = (0xD800, 0xDFFF)


@dataclass(frozen=True)
class CharSet:
    """Ranges in order, apart from each other; `of` makes them so."""

    ranges: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, ranges: Iterable[tuple[int, int]]) -> CharSet:
        merged: list[tuple[int, int]] = []
        for low, high in sorted(part for pair in ranges for part in _without_surrogates(*pair)):
            if merged and low <= _next(merged[-1][1]):
                merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
            else:
                merged.append((low, high))
        return cls(tuple(merged))

    @classmethod
    def one(cls, character: str) -> CharSet:
        return cls.of([(ord(character), ord(character))])

    @cached_property
    def inverse(self) -> CharSet:
        edges = [(-1, -1), *self.ranges, (LAST + 1, LAST + 1)]
        gaps = [(left[1] + 1, right[0] - 1) for left, right in pairwise(edges)]
        return CharSet.of((low, high) for low, high in gaps if low <= high)

    @property
    def single(self) -> int | None:
        """The code point, where there is but one."""
        low, high = self.ranges[0] if len(self.ranges) == 1 else (0, 1)
        return low if low == high else None

    def __or__(self, other: CharSet) -> CharSet:
        return CharSet.of((*self.ranges, *other.ranges))

    def __and__(self, other: CharSet) -> CharSet:
        both = [
            (max(one[0], two[0]), min(one[1], two[1]))
            for one in self.ranges
            for two in other.ranges
        ]
        return CharSet(tuple(sorted((low, high) for low, high in both if low <= high)))

    def __sub__(self, other: CharSet) -> CharSet:
        return self & other.inverse

    def __le__(self, other: CharSet) -> bool:
        return all(
            any(low >= first and high <= last for first, last in other.ranges)
            for low, high in self.ranges
        )

    def __bool__(self) -> bool:
        return bool(self.ranges)


def _next(code: int) -> int:
    """The code point after this one, as if the surrogates were not there."""
    return _SURROGATES[1] + 1 if code + 1 == _SURROGATES[0] else code + 1


def _without_surrogates(low: int, high: int) -> list[tuple[int, int]]:
    first, last = _SURROGATES
    parts = [(low, min(high, first - 1)), (max(low, last + 1), high)]
    return [(start, end) for start, end in parts if start <= end]


def ranges(*pairs: str) -> CharSet:
    """`ranges("az", "09")`: from the first to the second character of each."""
    return CharSet.of((ord(pair[0]), ord(pair[-1])) for pair in pairs)


EVERY = CharSet.of([(0, LAST)])
DIGIT = ranges("09")
WORD = ranges("09", "AZ", "az", "_")
SPACE = ranges("\t\r", " ")
# Java's line terminators: Python's own `.` leaves out the first only.
DOT = ranges("\n", "\r", "\x85", "\u2028\u2029").inverse


@dataclass(frozen=True)
class Span:
    """The characters from `start` up to, not with, `end`."""

    start: int
    end: int


NOWHERE = Span(0, 0)


@dataclass(frozen=True)
class Chars:
    """One character of the set."""

    set: CharSet
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True)
class Begin:
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True)
class End:
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True)
class Sequence:
    """One after the other; without items it is the empty text."""

    items: tuple[Node, ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True)
class Choice:
    items: tuple[Node, ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True)
class Repeat:
    """The item so often; `most` None is without limit. `possessive` is as it was written."""

    item: Node
    least: int
    most: int | None
    span: Span = field(default=NOWHERE, compare=False)
    possessive: bool = field(default=False, compare=False)


Node: TypeAlias = Chars | Begin | End | Sequence | Choice | Repeat


def is_nullable(node: Node, anchors: tuple[type, ...] = (Begin, End)) -> bool:
    """Whether the pattern can match without taking a character, where the `anchors` hold."""
    match node:
        case Chars():
            return False
        case Begin() | End():
            return isinstance(node, anchors)
        case Sequence():
            return all(is_nullable(item, anchors) for item in node.items)
        case Choice():
            return any(is_nullable(item, anchors) for item in node.items)
        case Repeat():
            return node.least == 0 or is_nullable(node.item, anchors)


class PatternRefusal(Refusal):
    """A pattern outside the safe subset; `position` is the place in the pattern."""

    def __init__(self, position: int, what: str, fix: str, why: str = "") -> None:
        place = f" at character {position}" if position else ""
        super().__init__(f"in the pattern{place}: {what}", fix, why)
        self.position = position
