"""Read topics with a plain consumer: a range of offsets, or whatever comes as a member of a group.

Of a range only committed records are returned; no group is joined, nothing is committed, and reading ends at the
range's end or raises UnavailableError. Members of groups commit for themselves.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import Future
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, Protocol, TypeVar, cast

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from headgate.core.kafka.topics import TopicState
from headgate.errors import UnavailableError

T = TypeVar("T")
AT_ONCE = 1_000
# So long a call waits for records that may not come.
WAIT_SECONDS = 0.05
QUIET_SECONDS = 20.0
# What a consumer is told when a partition is read to its end; librdkafka's public name.
PARTITION_END = KafkaError._PARTITION_EOF
# What an offset that is gone becomes: the reading's end, or the oldest record that is still there.
Expired = Literal["error", "earliest"]
# So long after a kill the other members of a group take over.
SESSION_SECONDS = 6


class ReceivedMessage(Protocol):
    """A message as it comes from a topic: the library lets any be without a place, for those that one makes."""

    def error(self) -> KafkaError | None: ...
    def topic(self) -> str: ...
    def partition(self) -> int: ...
    def offset(self) -> int: ...
    def key(self) -> bytes | None: ...
    def value(self) -> bytes | None: ...
    def headers(self) -> list[tuple[str, bytes | None]] | None: ...
    def timestamp(self) -> tuple[int, int]: ...


def open_consumer(bootstrap: str, group: str, more: Mapping[str, object] | None = None) -> Consumer:
    """A consumer that joins its group when it subscribes, from the beginning, and commits when told to."""
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "session.timeout.ms": SESSION_SECONDS * 1000,
            "heartbeat.interval.ms": 1_000,
            "fetch.wait.max.ms": 100,
            "reconnect.backoff.max.ms": 1_000,
            "log_level": 0,  # it would write refused connections to stderr
            **(more or {}),
        }
    )


def start_call(call: Callable[[], T]) -> Future[T]:
    """A client's call in a thread of its own, for calls that have no time limit.

    A commit or a close that meets a broker which has just gone asks for the group's coordinator until
    there is one again (librdkafka 3740), and no signal ends that. Not for a member of a group: when the
    hasher committed so while its partitions were taken away, the next member read the records again.
    """
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, name="kafka-call", daemon=True).start()
    return future


def answer_within(call: Future[T], seconds: float) -> T:
    """The result of a started call; UnavailableError when there is none after so long."""
    try:
        return call.result(seconds)
    except TimeoutError:
        raise UnavailableError(
            f"the broker did not answer within {seconds:g} s",
            fix="start the broker, or wait for it",
        ) from None


def close_within(consumer: Consumer, seconds: float) -> None:
    """Close a consumer that is in no group; one that a broker leaves waiting is left to its thread."""
    with suppress(UnavailableError):
        answer_within(start_call(consumer.close), seconds)


def consume(consumer: Consumer, most: int, timeout: float) -> list[ReceivedMessage]:
    """What has come, at most so many messages; waits until there are as many, at most that long."""
    return cast("list[ReceivedMessage]", consumer.consume(most, timeout))


@dataclass(frozen=True)
class Stretch:
    """Offsets of a topic, in each partition from `begin` (inclusive) to `end` (exclusive)."""

    topic: str
    begin: Mapping[int, int]
    end: Mapping[int, int]

    @classmethod
    def whole(cls, state: TopicState) -> Stretch:
        """All that the topic had when it was described."""
        return cls(state.name, state.begin, state.end)

    @property
    def partitions(self) -> frozenset[int]:
        """Those that hold an offset."""
        return frozenset(p for p, end in self.end.items() if end > self.begin[p])


@dataclass(frozen=True)
class Found:
    """A record where it stands."""

    partition: int
    offset: int
    message: Message

    @property
    def key(self) -> bytes | None:
        return _bytes(self.message.key())

    @property
    def value(self) -> bytes | None:
        return _bytes(self.message.value())

    @property
    def millis(self) -> int:
        """The record's time, negative where it has none."""
        return self.message.timestamp()[1]

    @property
    def headers(self) -> dict[str, str]:
        """As text; the last of two with one name."""
        pairs = cast("list[tuple[str, bytes | None]]", self.message.headers() or [])
        return {name: (value or b"").decode(errors="replace") for name, value in pairs}


def committed_records(
    bootstrap: str,
    stretch: Stretch,
    seconds: float = QUIET_SECONDS,
    *,
    quiet: bool = False,
    expired: Expired = "error",
) -> Generator[Found]:
    """Every committed record of the stretch; raises UnavailableError when it takes longer.

    With `quiet` the seconds count from the last record that came, for topics of any size.
    """
    limit, waiting = time.monotonic() + seconds, set(stretch.partitions)
    with closing(_consumer(bootstrap, expired)) as consumer:
        consumer.assign([TopicPartition(stretch.topic, p, stretch.begin[p]) for p in waiting])
        while waiting:
            if time.monotonic() > limit:
                raise _late(stretch.topic, seconds, quiet)
            for found in _consume(consumer):
                if found.partition not in waiting:
                    continue
                end = stretch.end[found.partition]
                if isinstance(found, Found) and found.offset < end:
                    yield found
                # The last offsets may be without a record: then only the partition's end is told.
                if isinstance(found, _End) or found.offset + 1 >= end:
                    waiting.discard(found.partition)
                    consumer.pause([TopicPartition(stretch.topic, found.partition)])
                limit = time.monotonic() + seconds if quiet else limit


def oldest_records(bootstrap: str, stretch: Stretch, seconds: float) -> dict[int, datetime]:
    """The time of the first committed record of each partition of the stretch, where there is one."""
    limit, waiting = time.monotonic() + seconds, set(stretch.partitions)
    times: dict[int, datetime] = {}
    with closing(_consumer(bootstrap, "error")) as consumer:
        consumer.assign([TopicPartition(stretch.topic, p, stretch.begin[p]) for p in waiting])
        while waiting and time.monotonic() < limit:
            for found in _consume(consumer):
                if found.partition in waiting:
                    waiting.discard(found.partition)
                    consumer.pause([TopicPartition(stretch.topic, found.partition)])
                    if isinstance(found, Found) and found.offset < stretch.end[found.partition]:
                        times[found.partition] = datetime.fromtimestamp(found.millis / 1000, UTC)
    return times


@dataclass(frozen=True)
class _End:
    partition: int


def _consume(consumer: Consumer) -> Generator[Found | _End]:
    for message in consumer.consume(AT_ONCE, timeout=WAIT_SECONDS):
        partition, offset, error = message.partition(), message.offset(), message.error()
        if error is None and partition is not None and offset is not None:
            yield Found(partition, offset, message)
        elif partition is not None and partition >= 0 and error is not None:
            if error.code() != PARTITION_END:
                raise UnavailableError("a topic could not be read", why=error.str())
            yield _End(partition)


def _bytes(given: bytes | str | None) -> bytes | None:
    """The library's types allow for text, which only its own deserializers make."""
    return given.encode() if isinstance(given, str) else given


def _late(topic: str, seconds: float, quiet: bool) -> UnavailableError:
    if quiet:
        return UnavailableError(f"{topic} gave nothing for {seconds:g} s before its end was read")
    return UnavailableError(f"{topic} could not be read within {seconds:g} s")


def _consumer(bootstrap: str, expired: Expired) -> Consumer:
    own = {
        "auto.offset.reset": expired,
        "fetch.wait.max.ms": 50,
        "queued.max.messages.kbytes": 32_768,
    }
    return open_consumer(bootstrap, "headgate-reader", own)  # the library asks for a group's name
