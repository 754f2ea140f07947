"""Reads a stretch of a topic with a plain Kafka consumer: no Spark, no group, nothing committed."""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from headgate.errors import UnavailableError

AT_ONCE = 1_000
# So long a call waits for records that may not come.
WAIT_SECONDS = 0.05
END = KafkaError._PARTITION_EOF  # pyright: ignore[reportPrivateUsage]  # librdkafka's public name


@dataclass(frozen=True)
class Stretch:
    """Offsets of a topic, in each partition from `begin` (inclusive) to `end` (exclusive)."""

    topic: str
    begin: Mapping[int, int]
    end: Mapping[int, int]

    @property
    def partitions(self) -> frozenset[int]:
        """Those that hold an offset."""
        return frozenset(p for p, end in self.end.items() if end > self.begin[p])


@dataclass(frozen=True)
class Found:
    """A record where it stands; `message` is None at the end of a partition."""

    partition: int
    offset: int
    message: Message | None


def committed_records(bootstrap: str, stretch: Stretch, seconds: float) -> Generator[Found]:
    """Every committed record of the stretch; raises UnavailableError when it takes longer."""
    limit, waiting = time.monotonic() + seconds, set(stretch.partitions)
    with closing(_consumer(bootstrap)) as consumer:
        consumer.assign([TopicPartition(stretch.topic, p, stretch.begin[p]) for p in waiting])
        while waiting:
            if time.monotonic() > limit:
                raise UnavailableError(f"{stretch.topic} could not be read within {seconds:g} s")
            for found in _consume(consumer):
                if found.partition not in waiting:
                    continue
                end = stretch.end[found.partition]
                if found.message is not None and found.offset < end:
                    yield found
                # The last offsets may be without a record: then only the partition's end is told.
                if found.message is None or found.offset + 1 >= end:
                    waiting.discard(found.partition)
                    consumer.pause([TopicPartition(stretch.topic, found.partition)])


def oldest_records(bootstrap: str, stretch: Stretch, seconds: float) -> dict[int, datetime]:
    """The time of the first committed record of each partition of the stretch, where there is one."""
    limit, waiting = time.monotonic() + seconds, set(stretch.partitions)
    times: dict[int, datetime] = {}
    with closing(_consumer(bootstrap)) as consumer:
        consumer.assign([TopicPartition(stretch.topic, p, stretch.begin[p]) for p in waiting])
        while waiting and time.monotonic() < limit:
            for found in _consume(consumer):
                if found.partition in waiting:
                    waiting.discard(found.partition)
                    consumer.pause([TopicPartition(stretch.topic, found.partition)])
                    if found.message is not None and found.offset < stretch.end[found.partition]:
                        times[found.partition] = _time(found.message)
    return times


def _time(message: Message) -> datetime:
    return datetime.fromtimestamp(message.timestamp()[1] / 1000, UTC)


def _consume(consumer: Consumer) -> Generator[Found]:
    for message in consumer.consume(AT_ONCE, timeout=WAIT_SECONDS):
        partition, offset, error = message.partition(), message.offset(), message.error()
        if error is None and partition is not None and offset is not None:
            yield Found(partition, offset, message)
        elif partition is not None and partition >= 0 and error is not None:
            if error.code() != END:
                raise UnavailableError("a topic could not be read", why=error.str())
            yield Found(partition, offset or 0, None)


def _consumer(bootstrap: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "headgate-checks",  # the library asks for one; no group is joined
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "auto.offset.reset": "error",  # an offset that is gone must not become another one
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 50,
            "log_level": 0,
        }
    )
