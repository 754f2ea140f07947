"""The last records of a topic, read backwards from its end: no group, nothing committed."""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from headgate.engine.topics import Topics
from headgate.errors import UnavailableError

AT_ONCE = 10_000
WAIT_SECONDS = 0.05
SECONDS = 20.0
END = KafkaError._PARTITION_EOF  # pyright: ignore[reportPrivateUsage]  # librdkafka's public name


@dataclass(frozen=True)
class Record:
    """One record where it stands; `at` is the broker's time in milliseconds, or negative."""

    partition: int
    offset: int
    at: int
    value: bytes | None

    @property
    def time(self) -> datetime | None:
        return datetime.fromtimestamp(self.at / 1000, UTC) if self.at >= 0 else None


@dataclass(frozen=True)
class Span:
    """Offsets by partition, from (inclusive) to (exclusive)."""

    ranges: Mapping[int, tuple[int, int]]


class Recent(Protocol):
    """Where the last records of a topic can be read."""

    def span(self, topic: str, last: int) -> Span: ...

    def records(self, topic: str, span: Span) -> Generator[Record]: ...


class KafkaRecent:
    """From a broker; it ends after the span or with UnavailableError after some seconds."""

    def __init__(self, bootstrap: str, seconds: float = SECONDS) -> None:
        self._bootstrap, self._seconds = bootstrap, seconds

    def span(self, topic: str, last: int) -> Span:
        """The last offsets of all partitions, as evenly as they have records."""
        state = Topics(self._bootstrap).found(topic)
        held = {p: state.end[p] - state.begin[p] for p in state.end}
        shares = shared_out(held, last)
        return Span({p: (state.end[p] - shares[p], state.end[p]) for p in held if shares[p]})

    def records(self, topic: str, span: Span) -> Generator[Record]:
        limit, waiting = time.monotonic() + self._seconds, set(span.ranges)
        with closing(_consumer(self._bootstrap)) as consumer:
            consumer.assign([TopicPartition(topic, p, span.ranges[p][0]) for p in waiting])
            while waiting:
                if time.monotonic() > limit:
                    raise UnavailableError(f"{topic} could not be read in {self._seconds:g} s")
                for message in consumer.consume(AT_ONCE, timeout=WAIT_SECONDS):
                    record = _record(message)
                    end = span.ranges[record.partition][1]
                    if record.offset < end and message.error() is None:
                        yield record
                    if record.offset + 1 >= end or message.error() is not None:
                        waiting.discard(record.partition)


def shared_out(held: Mapping[int, int], last: int) -> dict[int, int]:
    """How many each partition gives: evenly, and more where others have too few."""
    shares, left = dict.fromkeys(held, 0), last
    for place, partition in enumerate(sorted(held, key=lambda p: held[p])):
        shares[partition] = min(held[partition], -(-left // (len(held) - place)))
        left -= shares[partition]
    return shares


def _record(message: Message) -> Record:
    error = message.error()
    if error is not None and error.code() != END:
        raise UnavailableError("the topic could not be read", why=error.str())
    return Record(
        message.partition() or 0, message.offset() or 0, message.timestamp()[1], message.value()
    )


def _consumer(bootstrap: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "headgate-preview",  # the library asks for one; no group is joined
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            # What expired meanwhile is left out: a preview looks at what is there.
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 50,
            "queued.max.messages.kbytes": 32_768,
            "log_level": 0,
        }
    )
