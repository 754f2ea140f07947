"""The sums under a report: numbers from different places that must be equal."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sum:
    """Two numbers that must be equal."""

    words: str
    left: int
    right: int

    @property
    def holds(self) -> bool:
        return self.left == self.right
