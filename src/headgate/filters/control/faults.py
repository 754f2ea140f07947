"""Named points of the control plane at which a test may kill it."""

from __future__ import annotations

import os
import signal
from enum import StrEnum
from pathlib import Path

VARIABLE = "HEADGATE_CONTROL_FAULT"


class Point(StrEnum):
    """Where a fault can strike, in the order of approve and deploy."""

    BEFORE_APPROVAL = "before-approval"
    AFTER_APPROVAL = "after-approval"
    AFTER_COMMIT = "after-commit"
    AFTER_COMMIT_NOTED = "after-commit-noted"
    BEFORE_ORDER = "before-order"
    AFTER_ORDER = "after-order"
    AFTER_TOLD = "after-told"
    BEFORE_OUTCOME = "before-outcome"
    AFTER_OUTCOME = "after-outcome"


class ControlFaults:
    """Strikes at one point, once: `HEADGATE_CONTROL_FAULT=after-order:/path/of/witness`."""

    def __init__(self, text: str = "") -> None:
        name, _, self._witness = text.partition(":")
        self._point = Point(name) if name else None

    @classmethod
    def from_environment(cls) -> ControlFaults:
        return cls(os.environ.get(VARIABLE, ""))

    def at(self, point: Point) -> None:
        if point is self._point:
            if self._witness:
                Path(self._witness).write_text(point)
            self.strike()

    def strike(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)
