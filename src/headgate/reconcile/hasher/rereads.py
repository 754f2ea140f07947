"""Keys that differed are read once more, before the job's deadline: the two sides may only be apart.

A second look belongs to a record whose offset is not passed before it is made, so that a kill loses
none: mostly a request to read the key again, which stands on a topic of its own until then.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime

import orjson

from headgate.reconcile.hasher.asked import Asked, Known
from headgate.reconcile.hasher.reading import Reading, written

MOST = 200_000
REASON = "second look"


def request_for(asked: Asked, before: Reading, due: datetime) -> bytes:
    """The request by which a second look survives the process that planned it."""
    said = {"hash": before.hash, "version": written(before.version)}
    look = {"event_ts": written(asked.version), "before": said, "due": written(due)}
    deleted = {"deleted": True} if asked.deleted else {}
    return orjson.dumps({"pk": asked.key, "reason": REASON, **look, **deleted})


class Rereads:
    """One for each key, of its newest version; `delay` in seconds after the first reading.

    `let_go` hears of those that will not be made.
    """

    def __init__(
        self,
        delay: float,
        say: Callable[[str], None] = lambda _: None,
        most: int = MOST,
        let_go: Callable[[Asked], None] = lambda _: None,
    ) -> None:
        self.delay, self._say, self._most, self._let_go = delay, say, most, let_go
        self._by_key: dict[str, tuple[float, Asked]] = {}
        self._due: list[tuple[float, str]] = []
        self.left_out = 0

    def __len__(self) -> int:
        return len(self._by_key)

    def plan(self, asked: Asked, before: Reading, now: float) -> None:
        """Read it again later, this process itself."""
        known = before.known
        self.keep(replace(asked, expects=False, before=known, least=known.version), now, self.delay)

    def keep(self, look: Asked, now: float, delay: float) -> None:
        """Make a second look later; beyond the most that is kept it is counted, and said once."""
        if not self.has_room(look.key):
            self.leave_out()
            self._let_go(look)
            return
        self.settle(look.key)
        moment = now + min(max(delay, 0.0), self.delay)
        self._by_key[look.key] = (moment, look)
        heapq.heappush(self._due, (moment, look.key))

    def has_room(self, key: str) -> bool:
        return key in self._by_key or len(self._by_key) < self._most

    def leave_out(self) -> None:
        self.left_out += 1
        if self.left_out == 1:
            self._say(
                f"{len(self):,} keys wait for their second look: others are left out and counted"
                " until there is room; the job settles those with their first reading"
            )

    def known(self, key: str) -> Known | None:
        """What was read of a key that waits for its second look."""
        planned = self._by_key.get(key)
        return planned[1].before if planned else None

    def settle(self, key: str) -> None:
        """It agrees by now, or is planned anew: no need to read it again."""
        planned = self._by_key.pop(key, None)
        if planned is not None:
            self._let_go(planned[1])

    def forget(self, is_gone: Callable[[Asked], bool]) -> None:
        """Others make those now."""
        gone = [key for key, (_, look) in self._by_key.items() if is_gone(look)]
        for key in gone:
            del self._by_key[key]

    def due(self, now: float) -> Iterator[Asked]:
        """Those whose time has come; each is given out once."""
        while self._due and self._due[0][0] <= now:
            moment, key = heapq.heappop(self._due)
            planned = self._by_key.get(key)
            if planned is not None and planned[0] == moment:
                del self._by_key[key]
                yield planned[1]

    def all_now(self) -> Iterator[Asked]:
        """All that wait, when there will be no later."""
        return self.due(float("inf"))
