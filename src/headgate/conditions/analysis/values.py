"""Sets of the values that a term can have: spans of ordered keys, and whether NULL is among them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import Any, TypeAlias

# Keys of one term are of one kind and compare with each other; those of different terms never meet.
Key: TypeAlias = Any
# Between two keys: just before one (0) or just after it (1); -1 and 1 first are the ends of all.
Cut: TypeAlias = tuple[int, Key, int]
Span: TypeAlias = tuple[Cut, Cut]

LOWEST: Cut = (-1, 0, 0)
HIGHEST: Cut = (1, 0, 0)


def before(key: Key) -> Cut:
    return (0, key, 0)


def after(key: Key) -> Cut:
    return (0, key, 1)


def whole(cut: Cut) -> Cut:
    """The cut between whole numbers that divides them in the same way."""
    rank, key, side = cut
    if rank or (isinstance(key, int) and not side):
        return cut
    exact = Fraction(key)
    return before(floor(exact) + 1 if side else ceil(exact))


@dataclass(frozen=True)
class Values:
    """Spans in order and apart; `of` makes them so."""

    spans: tuple[Span, ...] = ()
    null: bool = False

    @classmethod
    def of(cls, spans: Iterable[Span], *, null: bool = False) -> Values:
        merged: list[Span] = []
        for low, high in sorted(span for span in spans if span[0] < span[1]):
            if merged and low <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
            else:
                merged.append((low, high))
        return cls(tuple(merged), null)

    @classmethod
    def point(cls, *keys: Key) -> Values:
        return cls.of((before(key), after(key)) for key in keys)

    def __bool__(self) -> bool:
        return self.null or bool(self.spans)

    def __and__(self, other: Values) -> Values:
        if len(self.spans) == 1 and len(other.spans) == 1:
            (low, high), (first, last) = self.spans[0], other.spans[0]
            low, high = max(low, first), min(high, last)
            return Values(((low, high),) if low < high else (), self.null and other.null)
        return Values(tuple(_shared(self.spans, other.spans)), self.null and other.null)

    def __or__(self, other: Values) -> Values:
        return Values.of((*self.spans, *other.spans), null=self.null or other.null)

    def __sub__(self, other: Values) -> Values:
        left = Values(tuple(_shared(self.spans, _gaps(other.spans))))
        return Values(left.spans, self.null and not other.null)

    def __le__(self, other: Values) -> bool:
        return not self - other

    @property
    def known(self) -> Values:
        """Without NULL."""
        return Values(self.spans)


def _shared(ones: tuple[Span, ...], others: tuple[Span, ...]) -> Iterable[Span]:
    at, beside = 0, 0
    while at < len(ones) and beside < len(others):
        (low, high), (first, last) = ones[at], others[beside]
        start, end = max(low, first), min(high, last)
        if start < end:
            yield (start, end)
        if high < last:
            at += 1
        else:
            beside += 1


def _gaps(spans: tuple[Span, ...]) -> tuple[Span, ...]:
    cuts = [LOWEST, *(cut for span in spans for cut in span), HIGHEST]
    return tuple((low, high) for low, high in zip(cuts[::2], cuts[1::2], strict=True) if low < high)


NULL_ALONE = Values((), null=True)
ANYTHING = Values(((LOWEST, HIGHEST),), null=True)
