"""When in its stream a batch comes. That and its states decide which of its keys are judged as a whole.

It stands in the commit of the states, so that a batch whose checkpoint was lost behind them is judged
again as it was: its windows may be counted by then, and what is told must be what was counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

DROPPED, WATERMARK, AMID = "dropped_by", "watermark", "amid"


@dataclass(frozen=True)
class Moment:
    """Windows that ended by `dropped_by` were dropped; `watermark` is behind what earlier batches have read.

    Both are in milliseconds. Of windows up to the start of the one `amid` which the state began, in
    microseconds, the table knows more than the state.
    """

    dropped_by: int
    watermark: int
    amid: int | None = None

    @property
    def counters(self) -> dict[str, int]:
        """As a commit has it."""
        told = {DROPPED: self.dropped_by, WATERMARK: self.watermark}
        return told if self.amid is None else {**told, AMID: self.amid}


def moment_of(counters: Mapping[str, int] | None) -> Moment | None:
    """As a commit has it; None where it was made of records alone, or before it was told."""
    if counters is None or not {DROPPED, WATERMARK} <= counters.keys():
        return None
    return Moment(counters[DROPPED], counters[WATERMARK], counters.get(AMID))
