"""Named points of a batch at which a test may kill the engine or make a step fail."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path

VARIABLE = "HEADGATE_FAULT"


class Point(StrEnum):
    """Where a fault can strike, in the order of a batch."""

    FILTER_RAISES = "filter-raises"
    AFTER_INTENT = "after-intent"
    MID_WRITE = "mid-write"
    AFTER_STAGING = "after-staging"
    AFTER_ROUTING = "after-routing"
    AFTER_DEAD_LETTERS = "after-dead-letters"
    AFTER_STATES = "after-states"
    AFTER_PARTIALS = "after-partials"
    AFTER_KEYS = "after-keys"
    AFTER_PUBLISH = "after-publish"
    BEFORE_OUTCOME = "before-outcome"


class Faults:
    """Strikes at one point, once: `HEADGATE_FAULT=after-intent:/path/of/witness`.

    `after-intent@2` strikes the second time. The witness file is written first, so that a test can
    tell that the fault was really met. `filter-raises@dealer-001` kills nothing: that filter raises on
    every record that it matches.
    """

    def __init__(self, text: str = "") -> None:
        where, _, self._witness = text.partition(":")
        name, _, count = where.partition("@")
        self._point = Point(name) if name else None
        self._filter = count if self._point is Point.FILTER_RAISES else ""
        self._left = 0 if self._filter else int(count or 1)

    @classmethod
    def from_environment(cls) -> Faults:
        return cls(os.environ.get(VARIABLE, ""))

    def at(self, point: Point) -> None:
        if self._due(point):
            self._strike()

    def raising_filter(self) -> str:
        """The filter that is made to raise; empty when none is."""
        return self._filter

    def witness(self) -> None:
        """A fault that kills nothing was met."""
        if self._witness:
            Path(self._witness).write_text(str(self._point))

    def during(self, point: Point, watcher: Callable[[], Callable[[], bool]]) -> None:
        """Strike from the side as soon as the watcher sees that the step is under way."""
        if self._due(point):
            threading.Thread(target=self._watch, args=(watcher(),), daemon=True).start()

    def _due(self, point: Point) -> bool:
        if point is not self._point:
            return False
        self._left -= 1
        return self._left == 0

    def _watch(self, begun: Callable[[], bool]) -> None:
        for _ in range(20_000):
            if begun():
                break
            time.sleep(0.005)
        self._strike()

    def _strike(self) -> None:
        self.witness()
        # The whole group: the JVM must die with its driver, as it does when a machine does.
        os.killpg(os.getpgid(0), signal.SIGKILL)
