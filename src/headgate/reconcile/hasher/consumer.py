"""The hasher's consumer group: its records, the offsets that are done, and its lag.

A group's offset never passes a record that is not done with.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import cast

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from headgate.core.kafka.reader import PARTITION_END, ReceivedMessage, consume, open_consumer
from headgate.core.kafka.topics import Topics
from headgate.errors import HeadgateError, OperationError
from headgate.reconcile.hasher.requests import Record

Partition = tuple[str, int]


@dataclass
class _Kept:
    """One partition: records that are not done with, in their order, and where the next one is.

    A record waits for its answer, for a second look, or for both.
    """

    epoch: int
    open: dict[int, None] = field(default_factory=dict[int, None])
    answers: set[int] = field(default_factory=set[int])
    looks: set[int] = field(default_factory=set[int])
    position: int | None = None

    @property
    def settled(self) -> int | None:
        return next(iter(self.open)) if self.open else self.position

    @property
    def reached(self) -> int | None:
        return min(self.answers) if self.answers else self.position

    def close(self, offset: int) -> None:
        if offset not in self.answers and offset not in self.looks:
            self.open.pop(offset, None)


class Offsets:
    """The partitions that this process has now. What it had before is no longer its business."""

    def __init__(self) -> None:
        self._kept: dict[Partition, _Kept] = {}
        self._told: dict[Partition, int] = {}
        self._epochs = 0

    @property
    def partitions(self) -> frozenset[Partition]:
        return frozenset(self._kept)

    @property
    def epochs(self) -> Mapping[Partition, int]:
        """The partitions, each with the number of its assignment."""
        return {partition: kept.epoch for partition, kept in self._kept.items()}

    @property
    def under_way(self) -> int:
        """Records that wait for their answer."""
        return sum(len(kept.answers) for kept in self._kept.values())

    def assign(self, partitions: Iterable[Partition]) -> None:
        for partition in partitions:
            self._epochs += 1
            self._kept[partition] = _Kept(self._epochs)
            self._told.pop(partition, None)

    def revoke(self, partitions: Iterable[Partition]) -> None:
        for partition in partitions:
            self._kept.pop(partition, None)
            self._told.pop(partition, None)

    def epoch(self, partition: Partition) -> int:
        """The number of this assignment of the partition."""
        if partition not in self._kept:
            self.assign([partition])
        return self._kept[partition].epoch

    def has(self, partition: Partition, epoch: int) -> bool:
        kept = self._kept.get(partition)
        return kept is not None and kept.epoch == epoch

    def begin(self, partition: Partition, offset: int) -> None:
        """A record was read."""
        kept = self._kept[partition]
        kept.open[offset] = None
        kept.answers.add(offset)
        kept.position = offset + 1

    def passed(self, partition: Partition, position: int) -> None:
        """There is no record before this offset any more: the end, or a gap."""
        kept = self._kept.get(partition)
        if kept is not None and position > (kept.position or 0):
            kept.position = position

    def done(self, partition: Partition, offset: int, epoch: int) -> None:
        """What came of a record is acknowledged; of an older assignment it does not matter."""
        if self.has(partition, epoch):
            self._kept[partition].answers.discard(offset)
            self._kept[partition].close(offset)

    def hold(self, partition: Partition, offset: int, epoch: int) -> None:
        """A second look belongs to the record: the group's offset waits for that as well."""
        if self.has(partition, epoch):
            self._kept[partition].looks.add(offset)

    def release(self, partition: Partition, offset: int, epoch: int) -> None:
        """The second look was made, or will not be."""
        if self.has(partition, epoch):
            self._kept[partition].looks.discard(offset)
            self._kept[partition].close(offset)

    def reached(self) -> Mapping[Partition, int]:
        """Where each partition's next record is that has no answer; second looks may still wait."""
        found = {p: kept.reached for p, kept in self._kept.items()}
        return {p: offset for p, offset in found.items() if offset is not None}

    def settled(self) -> Mapping[Partition, int]:
        """Where each partition's next record is that is not done with."""
        found = {p: kept.settled for p, kept in self._kept.items()}
        return {p: offset for p, offset in found.items() if offset is not None}

    def untold(self) -> Mapping[Partition, int]:
        """What is settled and not yet written to the group."""
        return {p: o for p, o in self.settled().items() if self._told.get(p) != o}

    def told(self, offsets: Mapping[Partition, int]) -> None:
        self._told.update({p: o for p, o in offsets.items() if p in self._kept})


COMMIT_SECONDS = 10.0
AT_ONCE = 500
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Group:
    """One member. `leaving` is called before partitions are given away: publish no more of them."""

    def __init__(
        self,
        bootstrap: str,
        group: str,
        topics: Sequence[str],
        offsets: Offsets,
        leaving: Callable[[], None],
        say: Callable[[str], None],
    ) -> None:
        self.name, self._offsets, self._leaving, self._say = group, offsets, leaving, say
        own = {
            # Topic by topic: the hasher of a key's events has the requests to read it again too.
            "partition.assignment.strategy": "range",
            "on_commit": self._committed,
        }
        self._consumer = open_consumer(bootstrap, group, own)
        self._paused: bool | None = False
        self._consumer.subscribe(
            list(topics), on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost
        )

    def records(self, most: int, timeout: float) -> Iterator[Record]:
        """What has come, at most so many; waits that long for the first."""
        first = cast("ReceivedMessage | None", self._consumer.poll(timeout))
        if first is None:
            return
        for message in (first, *consume(self._consumer, min(most, AT_ONCE), 0)):
            if message.error() is not None:
                self._note(message)
            elif (message.topic(), message.partition()) in self._offsets.partitions:
                yield self._record(message)

    def pause(self, on: bool) -> None:
        """Stay in the group without being given records, or go on."""
        if on == self._paused:
            return
        here = [TopicPartition(topic, number) for topic, number in self._offsets.partitions]
        with suppress(KafkaException):  # partitions that are just being given away
            (self._consumer.pause if on else self._consumer.resume)(here)
            self._paused = on

    def commit(self, wait: bool = False) -> None:
        """Write to the group what is settled; what cannot be written now is written next time."""
        offsets = self._offsets.untold()
        wanted = [TopicPartition(t, p, offset) for (t, p), offset in offsets.items()]
        with suppress(KafkaException):
            if wanted and wait:
                self._committed(None, self._consumer.commit(offsets=wanted, asynchronous=False))
            elif wanted:
                self._consumer.commit(offsets=wanted, asynchronous=True)

    def _committed(self, error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        if error is None:
            written = [p for p in partitions if p.error is None]
            self._offsets.told({(p.topic, p.partition): p.offset for p in written})

    def committed(self, partitions: Sequence[Partition]) -> Mapping[Partition, int]:
        """Where the whole group stands."""
        if not partitions:
            return {}
        asked = [TopicPartition(topic, number) for topic, number in partitions]
        try:
            found = self._consumer.committed(asked, timeout=COMMIT_SECONDS)
        except KafkaException:
            return {}
        return {(f.topic, f.partition): f.offset for f in found if f.offset >= 0}

    def close(self) -> None:
        """Leave the group, so that the others take over at once."""
        self._consumer.close()

    def _record(self, message: ReceivedMessage) -> Record:
        topic, partition = message.topic(), message.partition()
        self._offsets.begin((topic, partition), message.offset())
        return Record(
            topic,
            partition,
            message.offset(),
            EPOCH + timedelta(milliseconds=message.timestamp()[1]),
            message.key(),
            message.value(),
            tuple(message.headers() or ()),
            self._offsets.epoch((topic, partition)),
        )

    def _note(self, message: ReceivedMessage) -> None:
        error = cast("KafkaError", message.error())
        if error.code() == PARTITION_END:
            self._offsets.passed((message.topic(), message.partition()), message.offset())
        elif error.fatal():
            raise OperationError(
                f"the consumer group {self.name} cannot go on",
                why=error.str(),
                fix="start the hasher again; it goes on where the group stands",
            )

    def _assigned(self, _consumer: object, partitions: list[TopicPartition]) -> None:
        self._offsets.assign(_pairs(partitions))
        self._paused = None  # what was paused before comes back so: the next round tells all
        self._tell()

    def _revoked(self, _consumer: object, partitions: list[TopicPartition]) -> None:
        self._leaving()
        self.commit(wait=True)
        self._offsets.revoke(_pairs(partitions))
        self._tell()

    def _lost(self, _consumer: object, partitions: list[TopicPartition]) -> None:
        """Others have them already: what was settled since is theirs to do again."""
        self._offsets.revoke(_pairs(partitions))
        self._tell()

    def _tell(self) -> None:
        """Which partitions it has now: so that one can see how the work is shared."""
        by_topic: dict[str, list[int]] = {}
        for topic, number in sorted(self._offsets.partitions):
            by_topic.setdefault(topic, []).append(number)
        words = ", ".join(f"{topic} {numbers}" for topic, numbers in by_topic.items())
        self._say(f"group {self.name}: {words or 'no partitions'}")


def _pairs(partitions: list[TopicPartition]) -> list[Partition]:
    return [(partition.topic, partition.partition) for partition in partitions]


LOOK_SECONDS = 2.0


class LagWatch:
    """Asks the broker where the topics end; while it is away, the last answer stands."""

    def __init__(
        self,
        bootstrap: str,
        topics: Sequence[str],
        reached: Callable[[], Mapping[Partition, int]],
    ) -> None:
        self._bootstrap, self._names, self._reached = bootstrap, topics, reached
        self._ends: dict[Partition, int] = {}

    def lags(self) -> Mapping[str, int]:
        """Records by topic, of the partitions that this hasher has."""
        reached, found = self._reached(), Counter(dict.fromkeys(self._names, 0))
        for (topic, number), end in self._ends.items():
            if (topic, number) in reached:
                found[topic] += max(0, end - reached[topic, number])
        return found

    def run(self, stop: threading.Event) -> None:
        topics = Topics(self._bootstrap)
        while True:
            with suppress(HeadgateError):
                self._ends = self._asked(topics)
            if stop.wait(LOOK_SECONDS):
                return

    def _asked(self, topics: Topics) -> dict[Partition, int]:
        found = [topics.describe(name) for name in self._names]
        return {(s.name, p): end for s in found if s is not None for p, end in s.end.items()}
