"""Lookups by key: a bounded number at once, each retried a few times, and none while Cassandra is away.

Reads of one key never overlap, so their answers come in the order of the reads. What is asked for a
key while it is being read waits, and one later read answers all of it.

A read that fails is tried again after a growing pause. One that failed too often is lost, a dead
letter. A read that was under way twice when Cassandra went away is then made alone: if it is what breaks
the connection, as a value that the driver cannot read does, it is lost by itself. But twenty failures in a row,
or a driver that has no host left, mean that Cassandra is away: then nothing is tried and nothing is lost until a
probe gets an answer.
"""

from __future__ import annotations

import heapq
import random
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import NamedTuple, Protocol

from headgate.reconcile.cassandra.rows import Row
from headgate.reconcile.cassandra.session import Failure
from headgate.reconcile.hasher.requests import Asked

FIRST_PAUSE, LONGEST_PAUSE = 0.2, 5.0
PROBE_SECONDS = 1.0
FAILURES_IN_A_ROW = 20


@dataclass(frozen=True)
class Limits:
    """How many lookups at once, and how often one is tried again."""

    in_flight: int = 100
    retries: int = 3
    failures_in_a_row: int = FAILURES_IN_A_ROW


class Table(Protocol):
    """Where rows are looked up; answers may come from another thread."""

    def start(
        self,
        key: str,
        when_row: Callable[[Row | None], None],
        when_failed: Callable[[Failure], None],
    ) -> None: ...

    def probe(self, when_known: Callable[[bool], None]) -> None: ...

    def renew(self) -> None:
        """The table has another shape: look at it again."""
        ...


class Found(NamedTuple):
    """The row of a key, or that there is none, for all who asked before it was read."""

    asked: tuple[Asked, ...]
    row: Row | None


class Lost(NamedTuple):
    """Those who get no answer, after so many tries."""

    asked: tuple[Asked, ...]
    failure: Failure
    tries: int


@dataclass
class _Read:
    key: str
    asked: tuple[Asked, ...]
    tries: int = 0
    away: int = 0
    begun: float = 0.0

    @property
    def suspect(self) -> bool:
        """Whether it was under way twice when Cassandra went away: it may be what does that."""
        return self.away > 1


@dataclass
class Timing:
    """What lookups cost, for the metrics."""

    lookups: int = 0
    seconds: float = 0.0
    failures: int = 0


_Event = tuple[_Read | None, Row | None, Failure | None]


@dataclass
class Lookups:
    """The reads under way; all but the answers' arrival happens in the caller's thread."""

    table: Table
    limits: Limits = field(default_factory=Limits)
    now: Callable[[], float] = time.monotonic
    chance: Callable[[], float] = random.random
    timing: Timing = field(default_factory=Timing)

    def __post_init__(self) -> None:
        self._events: SimpleQueue[_Event] = SimpleQueue()
        self._waiting: dict[str, list[Asked]] = {}
        self._order: deque[str] = deque()
        self._ready: deque[_Read] = deque()
        self._later: list[tuple[float, int, _Read]] = []
        self._reading: set[str] = set()
        self._in_flight = self._in_a_row = self._numbers = 0
        self._alone = False
        self._probe_at: float | None = None
        self._probing = False
        self.why_paused = ""

    @property
    def paused(self) -> bool:
        """Whether Cassandra is away and nothing is tried."""
        return self._probe_at is not None

    @property
    def in_flight(self) -> int:
        return self._in_flight

    @property
    def outstanding(self) -> int:
        """Keys that wait for an answer."""
        return len(self._reading) + len(self._waiting)

    def ask(self, asked: Asked) -> None:
        """Have the key read; the answer comes out of `answers`."""
        if asked.key in self._waiting:
            self._waiting[asked.key].append(asked)
            return
        self._waiting[asked.key] = [asked]
        if asked.key not in self._reading:
            self._order.append(asked.key)

    def answers(self, timeout: float) -> Iterator[Found | Lost]:
        """Start what may be started, then what has come within the time."""
        self._start_due()
        for event in self._arrived(timeout):
            yield from self._heard(event)
        self._start_due()

    def _arrived(self, timeout: float) -> Iterator[_Event]:
        try:
            yield self._events.get(timeout=timeout) if timeout else self._events.get_nowait()
            while True:
                yield self._events.get_nowait()
        except Empty:
            return

    def _start_due(self) -> None:
        if self._probe_at is not None:
            self._probe()
            return
        while self._later and self._later[0][0] <= self.now():
            self._ready.append(heapq.heappop(self._later)[2])
        while self._in_flight < self.limits.in_flight and not self.paused and not self._alone:
            if self._ready and self._ready[0].suspect and self._in_flight:
                return
            read = self._next()
            if read is None:
                return
            self._alone = read.suspect
            self._start(read)

    def _next(self) -> _Read | None:
        if self._ready:
            return self._ready.popleft()
        if not self._order:
            return None
        key = self._order.popleft()
        self._reading.add(key)
        return _Read(key, tuple(self._waiting.pop(key)))

    def _start(self, read: _Read) -> None:
        read.tries += 1
        read.begun = self.now()
        self._in_flight += 1
        self.table.start(
            read.key,
            lambda row: self._events.put((read, row, None)),
            lambda failure: self._events.put((read, None, failure)),
        )

    def _heard(self, event: _Event) -> Iterator[Found | Lost]:
        read, row, failure = event
        if read is None:
            self._probed(up=failure is None)
            return
        self._in_flight -= 1
        self._alone = False
        self.timing.lookups += 1
        self.timing.seconds += self.now() - read.begun
        if failure is not None:
            yield from self._failed(read, failure)
            return
        self._in_a_row = 0
        self._release(read)
        yield Found(read.asked, row)

    def _release(self, read: _Read) -> None:
        self._reading.discard(read.key)
        if read.key in self._waiting:
            self._order.append(read.key)

    def _failed(self, read: _Read, failure: Failure) -> Iterator[Lost]:
        self.timing.failures += 1
        if failure.kind == "row":  # Cassandra has answered, and would answer so again
            self._in_a_row = 0
            self._release(read)
            yield Lost(read.asked, failure, read.tries)
            return
        self._in_a_row += 1
        if failure.kind == "shape":
            self.table.renew()
        if failure.kind == "away":
            read.tries -= 1  # it was not slow: nobody was there to ask
            read.away += 1
            self._pause(failure)
        if read.away > self.limits.retries + 1:
            self._release(read)
            yield Lost(read.asked, failure, read.away)
        elif self.paused:
            self._ready.append(read)
        elif read.tries > self.limits.retries or failure.kind == "refused":
            self._release(read)
            yield Lost(read.asked, failure, read.tries)
        else:
            self._try_later(read)
        if self._in_a_row >= self.limits.failures_in_a_row:
            self._pause(failure)

    def _try_later(self, read: _Read) -> None:
        pause = min(FIRST_PAUSE * 2 ** (read.tries - 1), LONGEST_PAUSE)
        self._numbers += 1
        due = self.now() + pause * (0.5 + self.chance())
        heapq.heappush(self._later, (due, self._numbers, read))

    def _pause(self, failure: Failure) -> None:
        if not self.paused:
            self._probe_at = self.now() + PROBE_SECONDS
            self.why_paused = failure.words

    def _probe(self) -> None:
        if self._probing or self._probe_at is None or self.now() < self._probe_at:
            return
        self._probing = True
        away = Failure("away", "no answer")
        self.table.probe(lambda up: self._events.put((None, None, None if up else away)))

    def _probed(self, *, up: bool) -> None:
        self._probing = False
        self._probe_at = None if up else self.now() + PROBE_SECONDS
        if up:
            self._in_a_row = 0
