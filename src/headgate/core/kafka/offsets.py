"""Offsets: of the topics that one query follows, of records that expired unread, of a consumer group.

`Followed` is one topic, or the two topics of a pair by side; its offsets have the keys of a ledger
range (`0`, or `onprem:0`). Records that left a topic before they were read are counted and refused
with ExpiredError, never skipped. The group's offsets are a copy for other tools, written by a consumer
that joins nothing: the admin client would end the process when a connection breaks (librdkafka 4605).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Self, TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from headgate.core.kafka.reader import answer_within, close_within, open_consumer, start_call
from headgate.core.kafka.topics import Topics, TopicState, kafka_error
from headgate.core.ledger.ranges import (
    ALONE,
    OffsetRange,
    PairRange,
    TopicRange,
    join_sides,
    side_offsets,
)
from headgate.errors import BatchRefusedError, HeadgateError, OperationError, UnavailableError


@dataclass(frozen=True)
class Followed:
    """The topics of one query by side; offsets are told by the keys that a range has."""

    topics: Mapping[str, TopicState]

    @classmethod
    def one(cls, topic: TopicState) -> Self:
        return cls({ALONE: topic})

    @property
    def name(self) -> str:
        """For a person."""
        return " and ".join(topic.name for topic in self.topics.values())

    @property
    def names(self) -> dict[str, str]:
        """The topics' names by side."""
        return {side: topic.name for side, topic in self.topics.items()}

    @property
    def topic_id(self) -> str:
        """Another one when any of the topics was deleted and made again."""
        return ",".join(topic.topic_id for topic in self.topics.values())

    @property
    def begin(self) -> dict[str, int]:
        return _join({side: topic.begin for side, topic in self.topics.items()})

    @property
    def end(self) -> dict[str, int]:
        return _join({side: topic.end for side, topic in self.topics.items()})

    def range(self, start: Mapping[str, int], end: Mapping[str, int]) -> OffsetRange:
        """From these offsets to those, of one topic or of a pair."""
        sides = {
            side: TopicRange(
                topic.name, topic.topic_id, side_offsets(start, side), side_offsets(end, side)
            )
            for side, topic in self.topics.items()
        }
        return sides[ALONE] if ALONE in sides else PairRange(sides)

    def now(self, topics: Topics) -> Followed:
        """The same topics as they are now; each must be there."""
        return Followed({side: topics.found(topic.name) for side, topic in self.topics.items()})


def _join(sides: Mapping[str, Mapping[int, int]]) -> dict[str, int]:
    return join_sides({side: {str(p): n for p, n in own.items()} for side, own in sides.items()})


# What Spark says when offsets that it was to read are gone.
DATA_LOSS = ("KAFKA_DATA_LOSS", "OffsetOutOfRangeException", "data may have been lost")


class ExpiredError(BatchRefusedError):
    """Records expired on the topic before a job read them; a person must decide."""

    code = "HG-1003"


def expired(topic: Followed, start: Mapping[str, int]) -> dict[str, int]:
    """Offsets by partition that are gone from the topic, though the next batch starts before them.

    A partition that `start` lacks was added later, and begins at 0.
    """
    behind = {p: begin - start.get(p, 0) for p, begin in topic.begin.items()}
    return {p: count for p, count in behind.items() if count > 0}


def refuse_expired(topic: Followed, start: Mapping[str, int], job: str) -> None:
    """Raise when the next batch of this job would have to skip records."""
    gone = expired(topic, start)
    if gone:
        where = ", ".join(f"partition {p}: {_offsets(topic, p, n)}" for p, n in gone.items())
        raise ExpiredError(
            f"{sum(gone.values()):,} records of {topic.name} expired before {job} read them",
            why=f"the topic no longer has them ({where})",
            fix=f"send them again, or go on without them: headgate job accept-gap {job};"
            " and raise the topic's retention above the longest pause",
        )


def refuse_shorter(topic: Followed, start: Mapping[str, int], job: str) -> None:
    """Raise when the topic ends before what was read: its offsets would be given out again."""
    short = {p: end for p, end in topic.end.items() if end < start.get(p, 0)}
    if short:
        raise BatchRefusedError(
            f"topic {topic.name} ends before what {job} has read from it",
            why=f"it ends at {short}, and the table at {dict(start)}: its broker has lost records",
            fix="restore the topic; or delete it, make it again, send what was lost, then:"
            f" headgate job repair {job}",
        )


def _offsets(topic: Followed, partition: str, count: int) -> str:
    begin = topic.begin[partition]
    return f"offsets {begin - count:,} to {begin - 1:,}"


def is_data_loss(error: BaseException) -> bool:
    return any(sign in str(error) for sign in DATA_LOSS)


SECONDS = 6.0
NO_OFFSET = 0
# The answers of a broker whose coordinator is not there yet, or is another one by now.
NO_COORDINATOR = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
)
T = TypeVar("T")
NOTHING_LOST = "nothing is lost: the ledger has them"


def group_of(job: str) -> str:
    """The group that carries a job's offsets."""
    return f"headgate-{job}"


class GroupOffsets:
    """The offsets of one group on one topic; to be closed."""

    def __init__(self, bootstrap: str, group: str, topic: str) -> None:
        self.group = group
        self._topic = topic
        own = {
            "socket.timeout.ms": int(SECONDS * 1000),
            # So long a commit waits for the group's coordinator.
            "session.timeout.ms": int(SECONDS * 1000),
            "reconnect.backoff.max.ms": 500,
        }
        self._consumer = open_consumer(bootstrap, group, own)
        self._last_commit: Future[list[TopicPartition]] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        close_within(self._consumer, SECONDS)

    def write(self, offsets: Mapping[str, int]) -> None:
        """Where the next record of each partition is; refused while someone consumes in the group."""
        partitions = [TopicPartition(self._topic, int(p), offset) for p, offset in offsets.items()]
        _retry_without_coordinator(lambda: self._commit(partitions))

    def _commit(self, partitions: list[TopicPartition]) -> None:
        words = f"the offsets of the consumer group {self.group} could not be written"
        try:
            done = self._commit_in_order(partitions)
        except KafkaException as error:
            raise _explained(kafka_error(error), words) from error
        except UnavailableError as error:
            raise UnavailableError(words, why=error.what, fix=NOTHING_LOST) from error
        for partition in done or ():
            if partition.error is not None:
                raise _explained(partition.error, words)

    def _commit_in_order(self, offsets: list[TopicPartition]) -> list[TopicPartition]:
        """Commit after the commit before, which may have been left without an answer when its broker went."""
        if self._last_commit is not None:
            with suppress(KafkaException):
                answer_within(self._last_commit, SECONDS)
        commit = partial(self._consumer.commit, offsets=offsets, asynchronous=False)
        self._last_commit = call = start_call(commit)
        return answer_within(call, 2 * SECONDS)

    def read(self, partitions: Iterable[int]) -> dict[str, int]:
        """The group's offsets on the topic; a partition without one is left out."""
        requested = [TopicPartition(self._topic, partition) for partition in partitions]
        committed = _retry_without_coordinator(lambda: self._committed(requested))
        return {str(p.partition): p.offset for p in committed if p.offset >= NO_OFFSET}

    def _committed(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        words = f"the offsets of the consumer group {self.group} could not be read"
        try:
            return self._consumer.committed(partitions, timeout=SECONDS)
        except KafkaException as error:
            raise _explained(kafka_error(error), words) from error


def _retry_without_coordinator(call: Callable[[], T]) -> T:
    """The call's result; a broker makes the coordinator only when the first group comes."""
    limit = time.monotonic() + SECONDS
    while True:
        try:
            return call()
        except UnavailableError:
            if time.monotonic() > limit:
                raise
            time.sleep(0.2)


def _explained(reason: KafkaError, words: str) -> HeadgateError:
    is_away = reason.retriable() or reason.code() in NO_COORDINATOR
    kind = UnavailableError if is_away else OperationError
    return kind(words, why=reason.str(), fix=NOTHING_LOST)
