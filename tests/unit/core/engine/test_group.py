"""The consumer group follows what is settled, and never at the cost of the batches."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from headgate.core.engine import run as module
from headgate.core.engine.run import PAUSE_SECONDS, GroupOffsetsOf
from headgate.core.kafka.offsets import Followed
from headgate.core.ledger.ranges import TopicRange
from headgate.errors import UnavailableError

SETTLED = TopicRange("orders", "old", {"0": 0}, {"0": 1_000_000})


@dataclass
class Group:
    """Stands for the broker's group; may fail."""

    fails: bool = False
    tried: int = 0
    written: list[dict[str, int]] = field(default_factory=list[dict[str, int]])

    def write(self, offsets: dict[str, int]) -> None:
        self.tried += 1
        if self.fails:
            raise UnavailableError("no coordinator")
        self.written.append(offsets)


@dataclass
class Clock:
    now: float = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> Group:
    group = Group()
    monkeypatch.setattr(module, "GroupOffsets", lambda *_: group)
    return group


def following(clock: Clock) -> GroupOffsetsOf:
    store = SimpleNamespace(settled_range=lambda job: SETTLED)
    target = SimpleNamespace(job="bronze-orders", bootstrap="nowhere")
    context: Any = SimpleNamespace(store=store)
    return GroupOffsetsOf(context, cast("Any", target), clock)


def topic(topic_id: str) -> Followed:
    return cast("Followed", SimpleNamespace(name="orders", topic_id=topic_id))


def test_offsets_of_a_topic_that_was_made_again_are_not_written_to_the_new_one(
    group: Group,
) -> None:
    offsets = following(Clock())
    offsets.catch_up(topic("new"))
    assert group.written == []
    offsets.catch_up(topic("old"))
    assert group.written == [{"0": 1_000_000}]


def test_a_group_that_fails_is_left_alone_for_a_while(group: Group) -> None:
    group.fails, clock = True, Clock()
    offsets = following(clock)
    for _ in range(3):
        offsets.follow(SETTLED)
    assert group.tried == 1
    group.fails, clock.now = False, clock.now + PAUSE_SECONDS
    offsets.follow(SETTLED)
    offsets.follow(SETTLED)
    assert len(group.written) == 2
