"""A broker that goes in the middle of a commit holds its caller for seconds, not until it comes back."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import TopicPartition

from headgate.core.kafka import offsets
from headgate.core.kafka.offsets import GroupOffsets
from headgate.core.kafka.reader import answer_within, close_within, start_call
from headgate.errors import UnavailableError


class SilentConsumer:
    """A stand-in for a consumer whose broker went: it answers once `broker_is_back`, as librdkafka does."""

    def __init__(self) -> None:
        self.broker_is_back = threading.Event()
        self.commits: list[int] = []

    def commit(self, offsets: list[TopicPartition], asynchronous: bool) -> list[TopicPartition]:
        assert not asynchronous
        self.broker_is_back.wait(60)
        self.commits.extend(partition.offset for partition in offsets)
        return offsets

    def close(self) -> None:
        self.broker_is_back.wait(60)


@pytest.fixture
def consumer() -> Iterator[Any]:
    consumer = SilentConsumer()
    yield consumer
    consumer.broker_is_back.set()


def test_a_call_without_an_answer_is_given_up_in_time(consumer: Any) -> None:
    begun = time.monotonic()
    with pytest.raises(UnavailableError, match="did not answer within"):
        answer_within(start_call(consumer.close), 0.1)
    close_within(consumer, 0.1)
    assert time.monotonic() - begun < 5


def test_offsets_of_a_group_are_written_in_order_once_the_broker_answers(
    consumer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offsets, "SECONDS", 0.1)
    monkeypatch.setattr(offsets, "open_consumer", lambda *_: consumer)
    with GroupOffsets("broker:9092", "group", "t") as group:
        begun = time.monotonic()
        with pytest.raises(UnavailableError, match="could not be written") as error:
            group.write({"0": 1})
        assert time.monotonic() - begun < 5
        assert error.value.fix == "nothing is lost: the ledger has them"
        consumer.broker_is_back.set()
        group.write({"0": 2})
    assert consumer.commits == [1, 2]
