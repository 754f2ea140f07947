"""Repetitions of single characters that stand side by side: one of them is enough.

With R, S, X sets of characters, m and k numbers:
- R{m,n}S{k,}   is R{m}S{k,}         where S has all of R
- R{m,}S{k,n}   is R{m,}S{k}         where R has all of S
- R{m,}y?S*     is R{m,}(yS*)?       where R has all of S
- R*y?S{k,}     is (R*y)?S{k,}       where S has all of R
- R{m,}XS{k,}   is R{m}[R-X]*XS{k,}  where R has all of X and S all of R: the first X will do;
  the same with one and the same rest after each of them: (Rz)*Xz(Sz)* is ([R-X]z)*Xz(Sz)*
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from headgate.expr.regex.chars import CharSet
from headgate.expr.regex.nodes import EMPTY, Chars, Node, Repeat, Sequence, Span


@dataclass(frozen=True)
class _Run:
    set: CharSet
    least: int
    most: int | None
    span: Span

    @property
    def varies(self) -> bool:
        return self.least != self.most

    def fixed(self) -> Node:
        return _node(_Run(self.set, self.least, self.least, self.span))


def settled(items: list[Node]) -> list[Node]:
    """The items with one repetition fewer, again and again."""
    while True:
        found = _pair(items) or _around(items) or _first(items)
        if found is None:
            return items
        items = [item for item in found if item != EMPTY]


def _pair(items: list[Node]) -> list[Node] | None:
    for at, (left, right) in enumerate(pairwise(items)):
        one, two = _run(left), _run(right)
        if one is None or two is None:
            continue
        replaced = _replaced(one, two)
        if replaced is not None:
            return [*items[:at], *replaced, *items[at + 2 :]]
    return None


def _replaced(one: _Run, two: _Run) -> list[Node] | None:
    if one.set == two.set and (one.varies or two.varies):
        most = None if one.most is None or two.most is None else one.most + two.most
        span = Span(one.span.start, two.span.end)
        return [_node(_Run(one.set, one.least + two.least, most, span))]
    if one.varies and two.most is None and one.set <= two.set:
        return [one.fixed(), _node(two)]
    if two.varies and one.most is None and two.set <= one.set:
        return [_node(one), two.fixed()]
    return None


def _around(items: list[Node]) -> list[Node] | None:
    for at, (left, middle, right) in enumerate(zip(items, items[1:], items[2:], strict=False)):
        if not isinstance(middle, Repeat) or (middle.least, middle.most) != (0, 1):
            continue
        one, two = _run(left), _run(right)
        if one is None or two is None or one.most is not None or two.most is not None:
            continue
        if two.least == 0 and two.set <= one.set:
            return [*items[:at], left, _optional(middle, middle.item, right), *items[at + 3 :]]
        if one.least == 0 and one.set <= two.set:
            return [*items[:at], _optional(middle, left, middle.item), right, *items[at + 3 :]]
    return None


def _optional(middle: Repeat, *items: Node) -> Node:
    return Repeat(Sequence(items, middle.span), 0, 1, middle.span)


def _first(items: list[Node]) -> list[Node] | None:
    for at, item in enumerate(items):
        one = _rounds(item)
        replaced = one and _first_at(one, items[at + 1 :])
        if replaced and replaced[0] != item:
            return [*items[:at], *replaced, *items[at + 1 :]]
    return None


def _first_at(one: _Rounds, following: list[Node]) -> list[Node] | None:
    length = len(one.rest)
    sign, rest, last = following[:1], following[1 : length + 1], following[length + 1 :][:1]
    two = _rounds(last[0]) if last else None
    if two is None or rest != one.rest or two.rest != one.rest or not isinstance(sign[0], Chars):
        return None
    if not sign[0].set <= one.set <= two.set:
        return None
    return [*one.times(one.least, one.least), *one.without(sign[0].set).times(0, None)]


@dataclass(frozen=True)
class _Rounds:
    """A repetition without limit of one character and a rest."""

    set: CharSet
    rest: list[Node]
    least: int
    span: Span

    def without(self, taken: CharSet) -> _Rounds:
        return _Rounds(self.set - taken, self.rest, self.least, self.span)

    def times(self, least: int, most: int | None) -> list[Node]:
        if most == 0 or not self.set:
            return []
        head = Chars(self.set, self.span)
        body = Sequence((head, *self.rest), self.span) if self.rest else head
        if (least, most) == (1, 1):
            return [head, *self.rest]
        return [Repeat(body, least, most, self.span)]


def _rounds(node: Node) -> _Rounds | None:
    if not isinstance(node, Repeat) or node.most is not None:
        return None
    head, *rest = node.item.items if isinstance(node.item, Sequence) else (node.item,)
    return _Rounds(head.set, rest, node.least, node.span) if isinstance(head, Chars) else None


def _run(node: Node) -> _Run | None:
    if isinstance(node, Chars):
        return _Run(node.set, 1, 1, node.span)
    if isinstance(node, Repeat) and isinstance(node.item, Chars):
        return _Run(node.item.set, node.least, node.most, node.span)
    return None


def _node(run: _Run) -> Node:
    item = Chars(run.set, run.span)
    if run.most == 0:
        return EMPTY
    return item if (run.least, run.most) == (1, 1) else Repeat(item, run.least, run.most, run.span)
