"""Sending events: at a rate, and again and again while the other side is away."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

import pytest

from headgate.demo.filters import events as sending
from headgate.demo.filters.events import Drawn, draw, send
from headgate.errors import UnavailableError


class Flaky:
    """Writes, but its answer is lost so many times."""

    def __init__(self, failures: int) -> None:
        self.kept: dict[str, int] = {}
        self._failures = failures

    def send(self, events: Sequence[Drawn]) -> int:
        new = [event for event in events if event.id not in self.kept]
        self.kept |= {event.id: len(self.kept) for event in new}
        if self._failures:
            self._failures -= 1
            raise UnavailableError("away")
        return len(new)


def test_events_whose_answer_was_lost_are_sent_again_and_counted_as_known(monkeypatch):
    monkeypatch.setattr(sending, "PAUSE_SECONDS", 0.0)
    target, events = Flaky(failures=3), list(draw(250, seed=1))
    seen: list[int] = []
    sent = send(target, events, 0, 10, seen.append)
    assert (sent.events, sent.created, sent.known, sent.retries) == (250, 150, 100, 3)
    assert (sum(seen), len(target.kept)) == (250, 250)


def test_an_outage_longer_than_its_patience_ends_it():
    with pytest.raises(UnavailableError):
        send(Flaky(failures=10_000), list(draw(1, seed=1)), 0, 0.0, lambda _: None)


def test_a_rate_is_kept_and_a_stop_is_heard(monkeypatch):
    """Time passes here only by waiting."""
    pauses: list[float] = []
    clock = SimpleNamespace(monotonic=lambda: sum(pauses), sleep=pauses.append)
    monkeypatch.setattr(sending, "time", clock)
    sent = send(Flaky(0), list(draw(60, seed=1)), 200, 1, lambda _: None)
    assert sent.events == 60
    assert pauses == [pytest.approx(0.1)] * 3
    assert send(Flaky(0), list(draw(60, seed=1)), 0, 1, lambda _: None, lambda: True).events == 0
