"""Repeated groups: refuse those that Java can only match by calling itself once a round.

A long text would exhaust Java's stack. Written possessively a group loops in place, which matches the
same texts only where the end of each round is never in doubt; elsewhere the group is refused, or
allowed few rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product
from typing import TypeAlias

from headgate.conditions.regex.automaton import Automaton, Loop
from headgate.conditions.regex.nodes import (
    Chars,
    Choice,
    Node,
    PatternRefusal,
    Repeat,
    Sequence,
)

MAX_ROUNDS = 64
_Steps: TypeAlias = Callable[[int], Iterable[int]]


def check_rounds(text: str, node: Node, made: Automaton) -> None:
    """Refuse groups that Java could only repeat by calling itself without limit."""
    for repeat in _repeats(node):
        if repeat.most is not None and repeat.most > MAX_ROUNDS:
            raise PatternRefusal(
                repeat.span.start,
                f"a group is repeated up to {repeat.most} times",
                f"Write at most {MAX_ROUNDS} times, + or * for any number, or a class: [ab] for (a|b).",
            )
    for loop in made.loops:
        if not isinstance(loop.node.item, Chars) and not _is_clear(made, loop):
            piece = text[loop.node.span.start - 1 : loop.node.span.end - 1]
            raise PatternRefusal(
                loop.node.span.start,
                f"it is not clear where a round of `{piece}` ends",
                "Let no alternative begin another one, and let what follows differ from how a "
                "round begins: (a|b)(,(a|b))* for (a|b|,)*, (ab?)* for (a|ab)*, [ab]* for (a|b)*. "
                "At the end of a pattern, write $ or leave the repetition away.",
                "Java would need more memory with each round",
            )


def _repeats(node: Node) -> list[Repeat]:
    """All repetitions of groups."""
    match node:
        case Sequence() | Choice():
            return [found for item in node.items for found in _repeats(item)]
        case Repeat():
            own = [] if isinstance(node.item, Chars) else [node]
            return own + _repeats(node.item)
        case _:
            return []


def _is_clear(made: Automaton, loop: Loop) -> bool:
    """Whether each round has one possible end, seen by the next character.

    No way may end a round where a different way goes on in it; where the same way could end or go
    on, the next character says which; and what comes after the rounds cannot go along with a whole
    one, so that no round has to be given back.
    """
    after = _mask(made, loop.first) | _mask(made, _exits(made, loop))
    for one, two in _ways(made, loop):
        ends = [state for state in (one, two) if state in loop.last]
        goes_on = _mask(made, loop.inner[one]) | _mask(made, loop.inner[two])
        if ends and goes_on & after:
            return False
        if one != two and _cut_off(loop, one, two):
            return False
    return not _given_back(made, loop)


def _given_back(made: Automaton, loop: Loop) -> bool:
    exits = _exits(made, loop)
    if not made.ends and loop.last & made.last:
        return True
    for round_, after in _along(made, loop, exits):
        if round_ in loop.last or (after in made.last and not made.ends):
            return True
    return False


def _along(made: Automaton, loop: Loop, exits: frozenset[int]) -> set[tuple[int, int]]:
    """A way in one more round, and one that left before it, after the same text."""
    return _together(
        made, product(loop.first, exits), loop.inner.__getitem__, made.follow.__getitem__
    )


def _cut_off(loop: Loop, one: int, two: int) -> bool:
    return any(end in loop.last and loop.inner[other] for end, other in ((one, two), (two, one)))


def _exits(made: Automaton, loop: Loop) -> frozenset[int]:
    targets = {target for state in loop.last for target in made.follow[state]}
    return frozenset(targets) - loop.states


def _mask(made: Automaton, states: frozenset[int] | tuple[int, ...]) -> int:
    mask = 0
    for state in states:
        mask |= made.masks[state]
    return mask


def _ways(made: Automaton, loop: Loop) -> set[tuple[int, int]]:
    """Pairs of states that two ways, or one, can be at in one round after the same text."""
    return _together(
        made, product(loop.first, loop.first), loop.inner.__getitem__, loop.inner.__getitem__
    )


def _together(
    made: Automaton, begin: Iterable[tuple[int, int]], after_one: _Steps, after_two: _Steps
) -> set[tuple[int, int]]:
    """All pairs that two ways reach after the same text, each by its own steps."""
    waiting, seen = list(begin), set[tuple[int, int]]()
    while waiting:
        one, two = waiting.pop()
        if (one, two) in seen or not made.masks[one] & made.masks[two]:
            continue
        seen.add((one, two))
        waiting.extend(product(after_one(one), after_two(two)))
    return seen
