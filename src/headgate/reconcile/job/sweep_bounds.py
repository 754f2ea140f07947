"""The bounds of one sweep, and rounds of shards where more keys wait than one sweep can take. Pure.

The range of a sweep records how far sweeps have come, in numbers that only rise: a finished sweep advances `until`
and `batches`; a round has a goal and counts its shards. Only the last shard of a round advances `until` to the
goal, so that a batch settled during the round is covered by the next sweep.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headgate.core.ledger.model import Range

UNTIL, BATCHES = "until", "batches"
# The goal of a round, the portions before it, those done and those when it is over; and when it looked.
GOAL, GOAL_BATCHES, BEGUN, DONE, ALL, AT = (
    "goal", "goal_batches", "begun", "portions", "all_portions", "at",
)  # fmt: skip
# What a sweep leaves out, since it was looked at in vain: it must be known when the sweep is done again.
SINCE, SINCE_BATCHES = "since", "since_batches"
# How often the input of a run has ended: what still waits is settled then.
ENDED = "ended"
Ends = Mapping[str, int]


@dataclass(frozen=True)
class Look:
    """What one sweep looks at, in microseconds: deadlines since, batches since, and until when.

    Of the keys it takes those whose number, divided by `of`, leaves `portion`. It knows what was written
    until `at`: in a round that is later than what it looks at. Where the input has `ended`, it looks at
    every key that still waits.
    """

    since: int
    batches: int
    until: int
    at: int
    portion: int = 0
    of: int = 1
    ended: bool = False

    @property
    def own(self) -> str:
        """Whether a key is of this portion, as SQL."""
        return f"pmod(xxhash64(pk), {self.of}) = {self.portion}" if self.of > 1 else "TRUE"


def single_ends(reached: Ends, now: Ends, since: Ends) -> dict[str, int]:
    """The end of a sweep that takes all keys, behind what was looked at in vain."""
    return {**reached, **now, SINCE: since[UNTIL], SINCE_BATCHES: since[BATCHES]}


def ended_ends(reached: Ends, now: Ends) -> dict[str, int]:
    """The end of a sweep that settles every key that still waits, since no more records come."""
    return {**single_ends(reached, now, now), ENDED: reached.get(ENDED, 0) + 1}


def is_amid_round(reached: Ends) -> bool:
    return reached.get(DONE, 0) < reached.get(ALL, 0)


def round_ends(reached: Ends, now: Ends, portions: int) -> dict[str, int]:
    """The end of a round's first portion."""
    begun = reached.get(ALL, 0)
    goal = {GOAL: now[UNTIL], GOAL_BATCHES: now[BATCHES], AT: now[UNTIL]}
    counted = {BEGUN: begun, DONE: begun + 1, ALL: begun + portions}
    return {UNTIL: 0, BATCHES: 0, **reached, **goal, **counted}


def next_ends(reached: Ends, now: Ends) -> dict[str, int]:
    """The end of the next portion; the last one reaches the round's goal."""
    done = reached[DONE] + 1
    over = {UNTIL: reached[GOAL], BATCHES: reached[GOAL_BATCHES]} if done == reached[ALL] else {}
    return {**reached, **over, DONE: done, AT: now[UNTIL]}


def look_of(range_: Range) -> Look:
    """As an intent has announced it."""
    start, end = range_.start, range_.end
    since, batches = start.get(UNTIL, 0), start.get(BATCHES, 0)
    if end.get(DONE, 0) == start.get(DONE, 0):
        # Those of an earlier sweep, which a round has handed on, are no later than this one's start.
        since, batches = max(since, end.get(SINCE, 0)), max(batches, end.get(SINCE_BATCHES, 0))
        ended = end.get(ENDED, 0) > start.get(ENDED, 0)
        return Look(since, batches, end[UNTIL], end[UNTIL], ended=ended)
    portion = end[DONE] - 1 - end[BEGUN]
    return Look(since, batches, end[GOAL], end[AT], portion, end[ALL] - end[BEGUN])
