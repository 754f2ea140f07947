"""Automatic repairs: rounds over the declared statuses, through outages, until a key was tried often enough.

Only a row that was sent counts as a try: its new verdict takes time, and some keys never get one. A key that was
left alone is looked at again, less and less often: its row may arrive on-prem after the verdict.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Protocol

from headgate.errors import ConflictError, HeadgateError, UnavailableError
from headgate.reconcile.repair.plan import Broken, RepairReport

PATIENCE_SECONDS, LONGEST_PATIENCE, TRIES = 600.0, 3_600.0, 3
FIRST_PAUSE, LONGEST_PAUSE = 2.0, 60.0
# Another process may be repairing the table, by hand: that passes as an outage does.
PASSING = (UnavailableError, ConflictError)


@dataclass(frozen=True)
class Repaired:
    """What became of some keys; those that are in neither set are still to be looked at."""

    report: RepairReport
    sent: AbstractSet[str]
    left_alone: AbstractSet[str]


class Work(Protocol):
    """What a round does; each may raise UnavailableError, and is then asked again."""

    def find(self, most: int) -> Sequence[Broken]:
        """The oldest that are broken."""
        ...

    def repair(self, broken: Sequence[Broken]) -> Repaired: ...

    def finish(self) -> Repaired | None:
        """Send what an earlier try left open; None where nothing is."""
        ...

    def let_go(self) -> None:
        """Close what may have died, so that it is opened anew."""
        ...

    def tell(self, report: RepairReport) -> None: ...

    def say(self, words: str) -> None: ...


@dataclass
class _Try:
    """How often this verdict was sent, how often left alone in a row, and when it is due again."""

    broken: Broken
    sent: int = 0
    left_alone: int = 0
    due_at: float = float("-inf")


@dataclass
class Tried:
    """What was looked at lately; another version or verdict of a key is another matter."""

    patience: float = PATIENCE_SECONDS
    longest: float = LONGEST_PATIENCE
    tries: int = TRIES
    _seen: dict[str, _Try] = field(default_factory=dict[str, _Try])

    def due(self, broken: Sequence[Broken], now: float) -> list[Broken]:
        """Those that may be tried now; what was never looked at comes first."""
        found = [(self._known(each), each) for each in broken]
        fresh = [each for known, each in found if known is None]
        return [*fresh, *(each for known, each in found if known and self._may(known, now))]

    def __len__(self) -> int:
        return len(self._seen)

    def forget(self, broken: Sequence[Broken], asked: int) -> None:
        """Drop what is no longer broken: of a list that was cut, what would stand before its end."""
        known = set(broken)
        end = broken[-1].version if len(broken) >= asked and broken else None
        gone = [
            pk
            for pk, each in self._seen.items()
            if each.broken not in known and (end is None or each.broken.version < end)
        ]
        for pk in gone:
            del self._seen[pk]

    def note(self, broken: Sequence[Broken], repaired: Repaired, now: float) -> None:
        for each in broken:
            known = self._known(each) or _Try(each)
            if each.pk in repaired.sent:
                known.sent, known.left_alone = known.sent + 1, 0
                known.due_at = now + self.patience
            elif each.pk in repaired.left_alone:
                known.due_at = now + min(self.patience * 2**known.left_alone, self.longest)
                known.left_alone += 1
            else:
                continue
            self._seen[each.pk] = known

    def _known(self, broken: Broken) -> _Try | None:
        found = self._seen.get(broken.pk)
        return found if found and found.broken == broken else None

    def _may(self, known: _Try, now: float) -> bool:
        return known.sent < self.tries and now >= known.due_at


@dataclass(frozen=True)
class Rounds:
    """How long it goes on: so many rounds, or until it is stopped."""

    every: float
    most: int | None = None
    limit: int = 1_000


def run_automatic(
    rounds: Rounds,
    work: Work,
    stopped: Callable[[], bool],
    *,
    tried: Tried | None = None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> int:
    """Find, repair, wait, again; how many keys the repairs that it ended have applied.

    An outage is waited out; the last of a number of rounds has no later and raises.
    """
    memory = Tried() if tried is None else tried
    each, outage, done = _Round(rounds.limit, work, memory, clock), _Outage(work.say), 0
    while not stopped() and (rounds.most is None or done < rounds.most):
        done += 1
        pause = rounds.every
        try:
            each.play()
            outage.over()
        except PASSING as error:
            work.let_go()
            if stopped():
                break
            if done == rounds.most:
                raise
            pause = outage.met(error)
        if done != rounds.most:
            _wait(pause, stopped, clock, sleep)
    return each.applied


@dataclass
class _Round:
    """What was left open first, then the oldest that are due."""

    limit: int
    work: Work
    memory: Tried
    clock: Callable[[], float]
    applied: int = 0
    _begun: Sequence[Broken] = ()
    # A repair of an earlier process may be open as well.
    _open: bool = True

    def play(self) -> None:
        if self._open:
            self._take(self.work.finish())
        if self._open:
            return
        self._begun = self._next()
        if self._begun:
            self._open = True
            self._take(self.work.repair(self._begun))

    def _take(self, found: Repaired | None) -> None:
        self._open = found is not None and not found.report.whole
        if found is not None:
            self.memory.note(self._begun, found, self.clock())
            self.applied += found.report.applied
            self.work.tell(found.report)
        self._begun = ()

    def _next(self) -> list[Broken]:
        """Those tried lately, however many and old, stand in nobody's way."""
        asked = self.limit + len(self.memory)
        found = self.work.find(asked)
        self.memory.forget(found, asked)
        return self.memory.due(found, self.clock())[: self.limit]


@dataclass
class _Outage:
    """Something is away: said once, tried ever more rarely."""

    say: Callable[[str], None]
    _pause: float = 0.0
    _said: str = ""

    def met(self, error: HeadgateError) -> float:
        """How long to wait now."""
        self._pause = min(2 * self._pause, LONGEST_PAUSE) or FIRST_PAUSE
        if error.what != self._said:
            why = f" ({error.why})" if error.why else ""
            self.say(
                f"{error.what}{why}: nothing is lost, it is tried again in {self._pause:g} s,"
                f" later every {LONGEST_PAUSE:g} s"
            )
        self._said = error.what
        return self._pause

    def over(self) -> None:
        if self._said:
            self.say("all answer again: going on")
        self._pause, self._said = 0.0, ""


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
