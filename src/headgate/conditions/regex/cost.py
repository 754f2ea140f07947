"""Bound how much a backtracking engine has to try for each character of a text, or refuse the pattern.

Such an engine walks every way through the automaton that the text allows. Two ways that part on the
same text and meet again at one state are two walks over all that follows. So:
- ways that part and meet inside one loop double with every round: refused (exponential);
- a loop that can be entered at any time, by ways that another loop (or the search) keeps sending,
  gathers a walk for each character: refused (quadratic);
- elsewhere ways are counted and their sum is bounded: time grows linearly with the text.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Literal

from headgate.conditions.regex.automaton import Automaton, Components, components_of
from headgate.conditions.regex.nodes import PatternRefusal

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


# Moves tried for one character of the text, at most: a thousand characters stay within 50 ms.
MAX_MOVES = 2_000
_MANY = "Begin each round with a sign that stands nowhere else in it: a(,a)*."
_SHARED = (
    "Put a sign between them that neither can take, or take one out of a class: "
    "[^@.]+\\. for [^@]+\\. Group an optional sign with one of them: (\\d*\\.)?\\d+ for \\d*\\.?\\d+."
)
_SOUGHT = (
    "Write ^ at the beginning, or begin with something that the repetition cannot take. A "
    "pattern without ^ need not repeat what it begins with: \\d-\\d for \\d+-\\d."
)


def check(text: str, made: Automaton) -> None:
    """Refuse what could take more than a bounded number of moves for each character."""
    components = components_of(made)
    _check_doubles(text, made, components)
    pairs = pairs_of(made, components)
    for meeting in pairs.meetings:
        raise _refused(text, made, meeting)
    moves = Ways(made, components, pairs).most()
    if moves > MAX_MOVES:
        raise PatternRefusal(
            0,
            "there are too many ways to match one text",
            "Make its parts differ in how they begin, use smaller numbers, or write ^ before it.",
            f"up to {moves} moves for each character, {MAX_MOVES} are allowed",
        )


def _check_doubles(text: str, made: Automaton, components: Components) -> None:
    for state, following in enumerate(made.follow):
        loop = components.number[state]
        for target, ways in following.items():
            if ways > 1 and loop is not None and loop == components.number[target]:
                raise _refused(text, made, Meeting("doubles", target, state))
            if ways > 1:
                place = made.spans[target].start or made.spans[state].start
                raise PatternRefusal(
                    place,
                    f"`{_piece(text, made, target or state)}` can be reached in two ways",
                    "Let only one alternative be empty: (a*|b+) for (a*|b*).",
                    "each would be tried",
                )


def _piece(text: str, made: Automaton, state: int) -> str:
    span = made.spans[state]
    return text[span.start - 1 : span.end - 1]


def _refused(text: str, made: Automaton, meeting: Meeting) -> PatternRefusal:
    piece, place = _piece(text, made, meeting.at), made.spans[meeting.at].start
    if meeting.kind == "doubles":
        return PatternRefusal(
            place,
            f"the rounds of a repetition can share a text at `{piece}`",
            _MANY,
            "the time could double with each character",
        )
    other = meeting.other
    if other == 0:
        return PatternRefusal(
            place,
            f"the repetition at `{piece}` can be come to from many places of one text",
            _SOUGHT,
            "the pattern is looked for from every place, and each would go the same way",
        )
    return PatternRefusal(
        place,
        f"two repetitions, at `{_piece(text, made, other)}` and at `{piece}`, "
        "can take the same text",
        _SHARED,
        "the time could grow with the square of its length",
    )


class Ways:
    """For each state, how many walks can be at it at one time, at most."""

    def __init__(self, made: Automaton, components: Components, pairs: Pairs) -> None:
        self.made, self.components, self.pairs = made, components, pairs
        self.before = self._before()
        self.ways = [0] * len(made.sets)

    def most(self) -> int:
        """Moves tried at one time, at most, over all states that can be active together."""
        for group in self.components.ordered:
            self._enter(group)
        effort = [ways * max(len(self.made.follow[s]), 1) for s, ways in enumerate(self.ways)]
        return max(
            own + sum(effort[other] for other in self.pairs.together[state])
            for state, own in enumerate(effort)
        )

    def _before(self) -> list[list[int]]:
        before: list[list[int]] = [[] for _ in self.made.sets]
        for state, following in enumerate(self.made.follow):
            for target in following:
                before[target].append(state)
        return before

    def _enter(self, group: list[int]) -> None:
        inside = frozenset(group)
        total = sum(self._arriving(state, inside) for state in group)
        if 0 in inside:
            total = 1
        number = self.components.number[group[0]]
        if number in self.pairs.crowded:
            total += self._later(inside)
        for state in group:
            self.ways[state] = total

    def _arriving(self, state: int, inside: frozenset[int]) -> int:
        sources = [source for source in self.before[state] if source not in inside]
        return max(
            (
                self.ways[source]
                + sum(self.ways[s] for s in sources if s in self.pairs.together[source])
                for source in sources
            ),
            default=0,
        )

    def _later(self, inside: frozenset[int]) -> int:
        """Walks that are still on their way to a loop when the first one has come to it."""
        paths: dict[int, int] = {}
        for group in reversed(self.components.ordered):
            state = group[0]
            if self.components.number[state] is None and state not in inside:
                following = self.made.follow[state]
                paths[state] = sum(1 if s in inside else paths.get(s, 0) for s in following)
        return sum(self.ways[state] * count for state, count in paths.items())
