"""How far a hasher is behind: what stands on its partitions and has no answer."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from headgate.core.kafka.engine_topics import Topics
from headgate.errors import HeadgateError
from headgate.reconcile.hasher.offsets import Partition

LOOK_SECONDS = 2.0


class LagWatch:
    """Asks the broker where the topics end; while it is away, the last answer stands."""

    def __init__(
        self,
        bootstrap: str,
        topics: Sequence[str],
        reached: Callable[[], Mapping[Partition, int]],
    ) -> None:
        self._bootstrap, self._names, self._reached = bootstrap, topics, reached
        self._ends: dict[Partition, int] = {}

    def lags(self) -> Mapping[str, int]:
        """Records by topic, of the partitions that this hasher has."""
        reached, found = self._reached(), Counter(dict.fromkeys(self._names, 0))
        for (topic, number), end in self._ends.items():
            if (topic, number) in reached:
                found[topic] += max(0, end - reached[topic, number])
        return found

    def run(self, stop: threading.Event) -> None:
        topics = Topics(self._bootstrap)
        while True:
            with suppress(HeadgateError):
                self._ends = self._asked(topics)
            if stop.wait(LOOK_SECONDS):
                return

    def _asked(self, topics: Topics) -> dict[Partition, int]:
        found = [topics.describe(name) for name in self._names]
        return {(s.name, p): end for s in found if s is not None for p, end in s.end.items()}
