"""The bounds of one sweep, and rounds of shards where more keys wait than one sweep can take. Pure.

`SweepProgress` records how far sweeps have come, in numbers that only rise: a finished sweep advances `until` and
`batches`; a round has a goal and counts its shards. Only the last shard of a round advances `until` to the goal, so
that a batch settled during the round is covered by the next sweep. Times are microseconds since 1970.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import NamedTuple, Self

from headgate.core.ledger.ranges import SweepRange


class SweepTimes(NamedTuple):
    """Until when deadlines are examined, and until when rows that batches have written are."""

    until: int = 0
    batches: int = 0


@dataclass(frozen=True)
class SweepProgress:
    """How far the sweeps of a pair have come.

    Of the running or last round: `goal` and `goal_batches` are what it examines in the end, `begun`, `shards_done`
    and `shards` count the shards before it, those done and those when it is over, `at` is when its last shard was
    judged. `since` and `since_batches` are what a sweep leaves out because an earlier one examined it in vain: it
    must be known when the sweep is done again. `ended` counts how often the input of a run has ended: what still
    waits is settled then.
    """

    until: int = 0
    batches: int = 0
    goal: int = 0
    goal_batches: int = 0
    begun: int = 0
    shards_done: int = 0
    shards: int = 0
    at: int = 0
    since: int = 0
    since_batches: int = 0
    ended: int = 0

    @classmethod
    def parse(cls, counters: Mapping[str, int]) -> Self:
        return cls(**counters)

    @property
    def counters(self) -> dict[str, int]:
        return asdict(self)

    @property
    def times(self) -> SweepTimes:
        return SweepTimes(self.until, self.batches)

    @property
    def is_amid_round(self) -> bool:
        return self.shards_done < self.shards

    def after_single(self, now: SweepTimes, since: SweepTimes) -> Self:
        """After a sweep that takes all keys, behind what was examined in vain."""
        return replace(
            self,
            until=now.until,
            batches=now.batches,
            since=since.until,
            since_batches=since.batches,
        )

    def after_end_of_input(self, now: SweepTimes) -> Self:
        """After a sweep that settles every key that still waits, since no more records come."""
        return replace(self.after_single(now, now), ended=self.ended + 1)

    def after_first_shard(self, now: SweepTimes, shards: int) -> Self:
        """After the first shard of a round of so many."""
        return replace(
            self,
            goal=now.until,
            goal_batches=now.batches,
            begun=self.shards,
            shards_done=self.shards + 1,
            shards=self.shards + shards,
            at=now.until,
        )

    def after_next_shard(self, now: SweepTimes) -> Self:
        """After the next shard of the round; the last one reaches the round's goal."""
        moved = replace(self, shards_done=self.shards_done + 1, at=now.until)
        if moved.is_amid_round:
            return moved
        return replace(moved, until=self.goal, batches=self.goal_batches)


@dataclass(frozen=True)
class SweepBounds:
    """What one sweep examines: deadlines after `since`, rows written after `batches`, both until `until`.

    Of the keys it takes those whose number, divided by `of`, leaves `shard`. It knows what was written
    until `at`: in a round that is later than what it examines. Where the input has `ended`, it examines
    every key that still waits.
    """

    since: int
    batches: int
    until: int
    at: int
    shard: int = 0
    of: int = 1
    ended: bool = False

    @property
    def shard_condition(self) -> str:
        """Whether a key is of this shard, as SQL."""
        return f"pmod(xxhash64(pk), {self.of}) = {self.shard}" if self.of > 1 else "TRUE"


def sweep_bounds(range_: SweepRange) -> SweepBounds:
    """The bounds of the sweep that an intent has announced."""
    start, end = SweepProgress.parse(range_.start), SweepProgress.parse(range_.end)
    if end.shards_done == start.shards_done:
        # Those of an earlier sweep, which a round has handed on, are no later than this one's start.
        since, batches = max(start.until, end.since), max(start.batches, end.since_batches)
        return SweepBounds(since, batches, end.until, end.until, ended=end.ended > start.ended)
    shard = end.shards_done - 1 - end.begun
    return SweepBounds(start.until, start.batches, end.goal, end.at, shard, end.shards - end.begun)
