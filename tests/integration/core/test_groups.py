"""Offsets stand in a consumer group as any tool of Kafka sees them, and never at the engine's cost."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, TopicPartition
from tests.support.services import RunningBroker

from headgate.core.kafka.offsets import GroupOffsets
from headgate.errors import HeadgateError
from headgate.local.process import wait_until


@pytest.fixture
def topic(broker: RunningBroker) -> str:
    return broker.new_topic(partitions=2)


@pytest.fixture
def offsets(broker: RunningBroker, topic: str) -> Iterator[GroupOffsets]:
    with GroupOffsets(broker.bootstrap, f"headgate-{topic}", topic) as group:
        yield group


def test_what_is_written_is_read_by_any_consumer_of_the_group(
    broker: RunningBroker, topic: str, offsets: GroupOffsets
) -> None:
    assert offsets.read([0, 1]) == {}
    offsets.write({"0": 7, "1": 0})
    offsets.write({"0": 9, "1": 3})
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": offsets.group})
    found = consumer.committed([TopicPartition(topic, 0), TopicPartition(topic, 1)], timeout=60)
    consumer.close()
    assert [partition.offset for partition in found] == [9, 3]
    assert offsets.read([0, 1]) == {"0": 9, "1": 3}


def test_a_group_that_someone_consumes_in_is_left_alone(
    broker: RunningBroker, topic: str, offsets: GroupOffsets
) -> None:
    options = {"bootstrap.servers": broker.bootstrap, "group.id": offsets.group}
    member = Consumer({**options, "auto.offset.reset": "earliest"})
    member.subscribe([topic])
    joined = wait_until(lambda: member.poll(0.2) is None and bool(member.assignment()), 120)
    assert joined
    with pytest.raises(HeadgateError, match="could not be written"):
        offsets.write({"0": 5})
    member.close()


@pytest.mark.slow
def test_a_broker_that_goes_and_comes_back_costs_a_refusal_at_most(
    private_broker: RunningBroker,
) -> None:
    topic = private_broker.new_topic()
    with GroupOffsets(private_broker.bootstrap, "headgate-x", topic) as group:
        group.write({"0": 1})
        private_broker.kill()
        with pytest.raises(HeadgateError, match="could not be written"):
            group.write({"0": 2})
        private_broker.restart()

        def written() -> bool:
            try:
                group.write({"0": 3})
            except HeadgateError:
                return False
            return True

        assert wait_until(written, 60)
        assert group.read([0]) == {"0": 3}
