"""What a run is told while its broker goes and comes."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from headgate.core.engine import stream as broker_watch
from headgate.core.engine.stream import BrokerWatch
from headgate.core.kafka.topics import Topics
from headgate.errors import HeadgateError, UnavailableError


class Broker(Topics):
    """A broker that a test takes away and brings back."""

    def __init__(self) -> None:
        self.away = False
        self.asked = 0

    def need(self) -> None:
        self.asked += 1
        if self.away:
            raise UnavailableError("the broker is away")


@dataclass
class Told:
    words: list[str] = field(default_factory=list[str])

    def waits(self, error: HeadgateError) -> None:
        self.words.append(error.what)

    def goes_on(self) -> None:
        self.words.append("goes on")


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_watch, "SECONDS_BETWEEN_LOOKS", -1.0)


@pytest.mark.usefixtures("at_once")
def test_it_is_told_when_the_broker_goes_and_once_when_it_is_back() -> None:
    broker, told = Broker(), Told()
    watch = BrokerWatch(broker, told.waits, told.goes_on)
    watch.look(steady=True)
    broker.away = True
    watch.look(steady=True)
    broker.away = False
    watch.look(steady=True)
    watch.look(steady=True)
    assert told.words == ["goes on", "the broker is away", "goes on"]


@pytest.mark.usefixtures("at_once")
def test_a_query_that_has_not_worked_yet_is_not_said_to_go_on() -> None:
    broker, told = Broker(), Told()
    watch = BrokerWatch(broker, told.waits, told.goes_on)
    watch.look(steady=False)
    assert told.words == []
    watch.look(steady=True)
    assert told.words == ["goes on"]


def test_it_looks_only_now_and_then() -> None:
    broker, told = Broker(), Told()
    watch = BrokerWatch(broker, told.waits, told.goes_on)
    for _ in range(100):
        watch.look(steady=True)
    assert broker.asked == 0
