"""Pairs of different ways through an automaton on one and the same text, and where they meet."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Literal

from headgate.conditions.regex.regex_automaton import Automaton
from headgate.conditions.regex.regex_nodes import PatternRefusal
from headgate.conditions.regex.strong import Components

MAX_PAIRS = 30_000
# Moves from one state are compared two by two; 200 parts that may all be left away are 1.3 million.
MAX_COMPARED = 2_000_000


class Story(Enum):
    """How two ways that are not at the same state came to be where they are."""

    APART = auto()
    # One is in a loop; the other, not in that loop, can stay away as long as it likes.
    WAITING = auto()
    # Both are in one loop: entered at once, parted inside, entered one after the other, or so
    # that the second could have come at any time.
    AT_ONCE = auto()
    PARTED = auto()
    LATER = auto()
    ANY_TIME = auto()


@dataclass(frozen=True)
class Meeting:
    """Two ways in a loop that end in one state; `other` is where the second came from."""

    kind: Literal["doubles", "gathers"]
    at: int
    other: int


@dataclass
class Pairs:
    """`together`: states active on the same text; `crowded`: loops entered a few times."""

    together: list[set[int]]
    meetings: list[Meeting] = field(default_factory=list[Meeting])
    crowded: set[int | None] = field(default_factory=set[int | None])


_Pair = tuple[int, int, Story, int]


def pairs_of(made: Automaton, components: Components) -> Pairs:
    """Everything that two ways on one text can come to."""
    if compared_moves(made) > MAX_COMPARED:
        raise _too_many_ways()
    return _Walk(made, components).all()


def compared_moves(made: Automaton) -> int:
    """How many pairs of moves leave one state together."""
    return sum(len(moves) * (len(moves) - 1) // 2 for moves in made.follow)


def _too_many_ways() -> PatternRefusal:
    return PatternRefusal(
        0, "there are too many ways to match one text", "Use smaller numbers, or write ^ before it."
    )


class _Walk:
    def __init__(self, made: Automaton, components: Components) -> None:
        self.number = components.number
        self.masks = made.masks
        self.moves = [made.moves(state) for state in range(len(made.sets))]
        self.result = Pairs([set() for _ in made.sets])
        self.seen: set[tuple[int, int, Story]] = set()
        self.waiting: list[_Pair] = []

    def all(self) -> Pairs:
        for state, moves in enumerate(self.moves):
            for at, one in enumerate(moves):
                for two in moves[at + 1 :]:
                    if self.masks[one] & self.masks[two]:
                        self._add(one, two, self._after_parting(state, one, two), state)
        while self.waiting and not self.result.meetings:
            one, two, story, origin = self.waiting.pop()
            self._step(one, two, story, origin)
        return self.result

    def _after_parting(self, state: int, one: int, two: int) -> Story:
        here, left, right = self.number[state], self.number[one], self.number[two]
        if left is not None and left == right:
            return Story.PARTED if here == left else Story.AT_ONCE
        return Story.WAITING if self._both_looping(left, right) else Story.APART

    def _both_looping(self, left: int | None, right: int | None) -> bool:
        return left is not None and right is not None and left != right

    def _add(self, one: int, two: int, story: Story, origin: int) -> None:
        if one > two:
            one, two = two, one
        if (one, two, story) in self.seen:
            return
        if len(self.seen) > MAX_PAIRS:
            raise _too_many_ways()
        self.seen.add((one, two, story))
        self.result.together[one].add(two)
        self.result.together[two].add(one)
        self.waiting.append((one, two, story, origin))

    def _step(self, one: int, two: int, story: Story, origin: int) -> None:
        masks = self.masks
        for left in self.moves[one]:
            mask = masks[left]
            for right in self.moves[two]:
                if not mask & masks[right]:
                    continue
                after, source = self._story(one, two, left, right, story, origin)
                if left == right:
                    self._meet(left, after, source)
                else:
                    self._add(left, right, after, source)

    def _story(
        self, one: int, two: int, left: int, right: int, story: Story, origin: int
    ) -> tuple[Story, int]:
        before, after = (
            (self.number[one], self.number[two]),
            (self.number[left], self.number[right]),
        )
        if after[0] is not None and after[0] == after[1]:
            return self._in_one_loop(before, after[0], story), self._source(
                one, two, after[0], origin
            )
        if self._both_looping(*after):
            return Story.WAITING, left if after[0] == before[0] else right
        if story is Story.WAITING and self._stays(before, after):
            return Story.WAITING, origin
        return Story.APART, origin

    def _in_one_loop(self, before: tuple[int | None, int | None], loop: int, story: Story) -> Story:
        inside = [number == loop for number in before]
        if all(inside):
            return story
        if any(inside):
            return Story.ANY_TIME if story is Story.WAITING else Story.LATER
        return Story.AT_ONCE

    def _source(self, one: int, two: int, loop: int, origin: int) -> int:
        """The loop outside that sent the second way."""
        for state in (one, two):
            if self.number[state] not in (loop, None):
                return state
        return origin

    def _stays(
        self, before: tuple[int | None, int | None], after: tuple[int | None, int | None]
    ) -> bool:
        return any(a is not None and a == b for a, b in zip(before, after, strict=True))

    def _meet(self, state: int, story: Story, origin: int) -> None:
        match story:
            case Story.PARTED:
                self.result.meetings.append(Meeting("doubles", state, origin))
            case Story.ANY_TIME:
                self.result.meetings.append(Meeting("gathers", state, origin))
            case Story.LATER:
                self.result.crowded.add(self.number[state])
            case _:
                pass
