"""A pattern as an automaton: one state for each character to take, and its strongly connected parts.

Counted repetitions are written out. Anchors are ignored, which can only add ways. State 0 is the
start; where the pattern is searched for, it also moves to itself.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

from headgate.conditions.regex.nodes import (
    EVERY,
    Begin,
    Chars,
    CharSet,
    Choice,
    End,
    Node,
    PatternRefusal,
    Repeat,
    Sequence,
    Span,
)

MAX_STATES = 1_000


@dataclass(frozen=True)
class Loop:
    """An unlimited repetition of a group: its states, and the moves within one round."""

    node: Repeat
    states: frozenset[int]
    first: frozenset[int]
    last: frozenset[int]
    inner: dict[int, tuple[int, ...]]


@dataclass
class Automaton:
    sets: list[CharSet]
    spans: list[Span]
    follow: list[Counter[int]]
    searches: bool
    ends: bool = False
    last: frozenset[int] = frozenset()
    loops: list[Loop] = field(default_factory=list[Loop])
    masks: list[int] = field(default_factory=list[int])

    def moves(self, state: int) -> list[int]:
        return list(self.follow[state])


@dataclass(frozen=True)
class _Part:
    first: Counter[int]
    last: Counter[int]
    empty: int


_NOTHING = _Part(Counter(), Counter(), 1)


def automaton(node: Node) -> Automaton:
    """The states and moves of a pattern; a refusal when there are too many."""
    builder = _Builder()
    whole = builder.part(node)
    made = builder.made
    tail = node.items[-1] if isinstance(node, Sequence) and node.items else node
    if isinstance(tail, Repeat) and tail.most is None and isinstance(tail.item, Chars):
        # `foo.*` has matched when its last state is reached: no way fails behind it.
        made.follow[-1].clear()
    made.follow[0] += whole.first
    made.searches = not held(node, 0)
    made.ends, made.last = held(node, -1), frozenset(whole.last)
    if made.searches:
        made.follow[0][0] += 1
    made.masks = _masks(made.sets)
    return made


def held(node: Node, side: Literal[0, -1]) -> bool:
    """Whether an anchor holds it: at the beginning of a text (0), or at its end (-1)."""
    match node:
        case Begin():
            return side == 0
        case End():
            return side == -1
        case Sequence():
            return bool(node.items) and held(node.items[side], side)
        case Choice():
            return all(held(item, side) for item in node.items)
        case Repeat():
            return node.least > 0 and held(node.item, side)
        case Chars():
            return False


def _masks(sets: list[CharSet]) -> list[int]:
    """Each set as bits, one for each range of characters that no set divides."""
    edges = sorted({edge for s in sets for low, high in s.ranges for edge in (low, high + 1)})
    number = {edge: at for at, edge in enumerate(edges)}
    return [
        sum((1 << number[high + 1]) - (1 << number[low]) for low, high in s.ranges) for s in sets
    ]


class _Builder:
    def __init__(self) -> None:
        self.made = Automaton([EVERY], [Span(0, 0)], [Counter()], searches=False)

    def part(self, node: Node) -> _Part:
        match node:
            case Chars():
                return self._state(node)
            case Begin() | End():
                return _NOTHING
            case Sequence():
                made = _NOTHING
                for item in node.items:
                    made = self._then(made, self.part(item))
                return made
            case Choice():
                return self._choice(node)
            case Repeat():
                return self._repeat(node)

    def _state(self, node: Chars) -> _Part:
        state = len(self.made.sets)
        if state > MAX_STATES:
            raise PatternRefusal(
                node.span.start,
                f"it has more than {MAX_STATES} places when its repetitions are written out",
                "Use smaller numbers, or compare length(…) with a number.",
            )
        self.made.sets.append(node.set)
        self.made.spans.append(node.span)
        self.made.follow.append(Counter())
        return _Part(Counter({state: 1}), Counter({state: 1}), 0)

    def _link(self, last: Counter[int], first: Counter[int]) -> None:
        for state, ways in last.items():
            for target, more in first.items():
                self.made.follow[state][target] += ways * more

    def _then(self, left: _Part, right: _Part) -> _Part:
        self._link(left.last, right.first)
        first = left.first + _times(right.first, left.empty)
        last = right.last + _times(left.last, right.empty)
        return _Part(first, last, left.empty * right.empty)

    def _choice(self, node: Choice) -> _Part:
        parts = [self.part(item) for item in node.items]
        first, last = Counter[int](), Counter[int]()
        for part in parts:
            first.update(part.first)
            last.update(part.last)
        return _Part(first, last, sum(part.empty for part in parts))

    def _repeat(self, node: Repeat) -> _Part:
        made = _NOTHING
        if node.most is None:
            for _ in range(node.least - 1):
                made = self._then(made, self.part(node.item))
            looped = self._loop(node)
            return self._then(made, looped if node.least else _optional(looped))
        for _ in range(node.least):
            made = self._then(made, self.part(node.item))
        return self._then(made, self._up_to(node.item, node.most - node.least))

    def _up_to(self, item: Node, count: int) -> _Part:
        """`item` so often at most: each one only after the one before it."""
        made, following = _NOTHING, list[_Part]()
        for _ in range(count):
            following.append(self.part(item))
        for part in reversed(following):
            made = _optional(self._then(part, made))
        return made

    def _loop(self, node: Repeat) -> _Part:
        before = len(self.made.sets)
        body = self.part(node.item)
        states = frozenset(range(before, len(self.made.sets)))
        inner = {state: tuple(self.made.follow[state]) for state in states}
        self.made.loops.append(
            Loop(node, states, frozenset(body.first), frozenset(body.last), inner)
        )
        self._link(body.last, body.first)
        return body


def _times(counts: Counter[int], factor: int) -> Counter[int]:
    return Counter({state: ways * factor for state, ways in counts.items() if factor})


def _optional(part: _Part) -> _Part:
    return _Part(part.first, part.last, part.empty + 1)


@dataclass(frozen=True)
class Components:
    """`number` of a state's loop, None outside of loops; `ordered`: groups, sources first."""

    number: list[int | None]
    ordered: list[list[int]]


def components_of(made: Automaton) -> Components:
    """Tarjan's algorithm, without recursion."""
    ordered = _Search(made).groups()
    number: list[int | None] = [None] * len(made.sets)
    for at, group in enumerate(ordered):
        if len(group) > 1 or group[0] in made.follow[group[0]]:
            for state in group:
                number[state] = at
    return Components(number, ordered)


class _Search:
    def __init__(self, made: Automaton) -> None:
        self.moves = [made.moves(state) for state in range(len(made.sets))]
        self.index: dict[int, int] = {}
        self.low: dict[int, int] = {}
        self.stack: list[int] = []
        self.open: set[int] = set()
        self.found: list[list[int]] = []

    def groups(self) -> list[list[int]]:
        self._open(0)
        path = [(0, iter(self.moves[0]))]
        while path:
            state, rest = path[-1]
            target = next(rest, None)
            if target is None:
                path.pop()
                self._close(state, path[-1][0] if path else None)
            elif target not in self.index:
                self._open(target)
                path.append((target, iter(self.moves[target])))
            elif target in self.open:
                self.low[state] = min(self.low[state], self.index[target])
        return self.found[::-1]

    def _open(self, state: int) -> None:
        self.index[state] = self.low[state] = len(self.index)
        self.stack.append(state)
        self.open.add(state)

    def _close(self, state: int, parent: int | None) -> None:
        if self.low[state] == self.index[state]:
            at = self.stack.index(state)
            group, self.stack = self.stack[at:], self.stack[:at]
            self.open -= set(group)
            self.found.append(group)
        if parent is not None:
            self.low[parent] = min(self.low[parent], self.low[state])
