"""A clock that only moves when a test moves it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

START = datetime(2024, 1, 1, tzinfo=UTC)


class ManualClock:
    """A callable clock for code that takes `now` as a dependency; `now` is its current time."""

    def __init__(self, now: datetime = START) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
