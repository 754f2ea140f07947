"""Keys that differed are read once more, before the job's deadline: the two sides may only be apart.

They are kept in memory alone. A kill loses them, and nothing else: the job settles such a key by
its deadline with the reading it has.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import replace

from headgate.feeds.hasher.asked import Asked
from headgate.feeds.hasher.reading import Reading

MOST = 200_000


class Rereads:
    """One for each key, of its newest version; `delay` in seconds after the first reading."""

    def __init__(
        self, delay: float, say: Callable[[str], None] = lambda _: None, most: int = MOST
    ) -> None:
        self.delay, self._say, self._most = delay, say, most
        self._by_key: dict[str, tuple[float, Asked]] = {}
        self._due: list[tuple[float, str]] = []
        self.left_out = 0

    def __len__(self) -> int:
        return len(self._by_key)

    def plan(self, asked: Asked, before: Reading, now: float) -> None:
        """Read it again later; beyond the most that is kept it is counted, and said once."""
        if asked.key not in self._by_key and len(self._by_key) >= self._most:
            self._leave_out()
            return
        again = replace(asked, expects=False, before=before.known)
        self._by_key[asked.key] = (now + self.delay, again)
        heapq.heappush(self._due, (now + self.delay, asked.key))

    def _leave_out(self) -> None:
        self.left_out += 1
        if self.left_out == 1:
            self._say(
                f"{len(self):,} keys wait for their second look: others are left out and counted"
                " until there is room; the job settles those with their first reading"
            )

    def settle(self, key: str) -> None:
        """It agrees by now: no need to read it again."""
        self._by_key.pop(key, None)

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
