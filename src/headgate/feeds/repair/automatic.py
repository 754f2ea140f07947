"""Repairs by themselves: rounds over the declared statuses, each key and version a few times at most."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from headgate.feeds.repair.model import Broken, RepairReport

PATIENCE_SECONDS, TRIES = 600.0, 3


@dataclass
class Tried:
    """What was sent lately: a verdict takes its time to follow, and some never will."""

    patience: float = PATIENCE_SECONDS
    tries: int = TRIES
    _seen: dict[tuple[str, datetime], tuple[int, float]] = field(
        default_factory=dict[tuple[str, datetime], tuple[int, float]]
    )

    def due(self, broken: Sequence[Broken], now: float) -> list[Broken]:
        return [each for each in broken if self._may(each, now)]

    def __len__(self) -> int:
        return len(self._seen)

    def forget(self, broken: Sequence[Broken], asked: int) -> None:
        """Drop what is no longer broken: of a list that was cut, what would stand before its end."""
        known = {(each.pk, each.version) for each in broken}
        end = broken[-1].version if len(broken) >= asked and broken else None
        gone = [key for key in self._seen if key not in known and (end is None or key[1] < end)]
        for key in gone:
            del self._seen[key]

    def note(self, broken: Sequence[Broken], now: float) -> None:
        for each in broken:
            count, _ = self._seen.get((each.pk, each.version), (0, now))
            self._seen[each.pk, each.version] = (count + 1, now)

    def _may(self, broken: Broken, now: float) -> bool:
        count, last = self._seen.get((broken.pk, broken.version), (0, float("-inf")))
        return count < self.tries and now - last >= self.patience


@dataclass(frozen=True)
class Rounds:
    """How long it goes on: so many rounds, or until it is stopped."""

    every: float
    most: int | None = None
    limit: int = 1_000


def run_automatic(
    rounds: Rounds,
    find: Callable[[int], Sequence[Broken]],
    repair: Callable[[Sequence[Broken]], RepairReport],
    tell: Callable[[RepairReport], None],
    stopped: Callable[[], bool],
    *,
    tried: Tried | None = None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> int:
    """Find, repair, wait, again; how many keys were applied."""
    memory, applied, done = tried or Tried(), 0, 0
    while not stopped() and (rounds.most is None or done < rounds.most):
        due = _next(rounds.limit, find, memory, clock())
        if due:
            memory.note(due, clock())
            found = repair(due)
            applied += found.applied
            tell(found)
        done += 1
        if rounds.most is None or done < rounds.most:
            _wait(rounds.every, stopped, clock, sleep)
    return applied


def _next(
    limit: int, find: Callable[[int], Sequence[Broken]], memory: Tried, now: float
) -> list[Broken]:
    """The oldest that are due; those tried lately, however many and old, stand in nobody's way."""
    asked = limit + len(memory)
    found = find(asked)
    memory.forget(found, asked)
    return memory.due(found, now)[:limit]


def _wait(
    seconds: float,
    stopped: Callable[[], bool],
    clock: Callable[[], float],
    sleep: Callable[[float], None],
) -> None:
    """In short steps, so that a stop is heard."""
    end = clock() + seconds
    while not stopped() and (left := end - clock()) > 0:
        sleep(min(0.2, left))
