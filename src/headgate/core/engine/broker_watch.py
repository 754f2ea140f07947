"""Is the broker there? Spark's clients wait for it in silence, for minutes; a person should know."""

from __future__ import annotations

import time
from collections.abc import Callable

from headgate.core.kafka.engine_topics import Topics
from headgate.errors import HeadgateError, UnavailableError

SECONDS_BETWEEN_LOOKS = 2.0


class BrokerWatch:
    """Tells when the broker goes away under a running query, and when the query goes on."""

    def __init__(
        self,
        topics: Topics,
        waits: Callable[[HeadgateError], None],
        goes_on: Callable[[], None],
    ) -> None:
        self._topics, self._waits, self._goes_on = topics, waits, goes_on
        self._looked = time.monotonic()
        self._told_well = False

    def look(self, *, steady: bool) -> None:
        """Look now and then; `steady` says that the query has worked since it was started."""
        if time.monotonic() - self._looked < SECONDS_BETWEEN_LOOKS:
            return
        try:
            self._topics.need()
        except UnavailableError as away:
            self._told_well = False
            self._waits(away)
        else:
            if steady and not self._told_well:
                self._told_well = True
                self._goes_on()
        self._looked = time.monotonic()
