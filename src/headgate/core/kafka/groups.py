"""Offsets of a consumer group, written without joining it, for the tools that people already use.

They are a copy: what a job has read is known from its table and the ledger alone. A consumer that
subscribes to nothing writes them, not the admin client: the latter's calls to a group's coordinator
end the whole process when the connection breaks in the middle of one (librdkafka, issue 4605).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Self, cast

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from headgate.errors import HeadgateError, OperationError, UnavailableError

SECONDS = 6.0
NO_OFFSET = 0


def group_of(job: str) -> str:
    """The group that carries a job's offsets."""
    return f"headgate-{job}"


class GroupOffsets:
    """The offsets of one group on one topic; to be closed."""

    def __init__(self, bootstrap: str, group: str, topic: str) -> None:
        self.group = group
        self._topic = topic
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "enable.auto.commit": False,
                "socket.timeout.ms": int(SECONDS * 1000),
                # So long a commit waits for the group's coordinator.
                "session.timeout.ms": int(SECONDS * 1000),
                "reconnect.backoff.max.ms": 500,
                "log_level": 0,
            }
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._consumer.close()

    def write(self, offsets: Mapping[str, int]) -> None:
        """Where the next record of each partition is; refused while someone consumes in the group."""
        wanted = [TopicPartition(self._topic, int(p), offset) for p, offset in offsets.items()]
        limit = time.monotonic() + SECONDS
        while True:
            try:
                self._commit(wanted)
                return
            except UnavailableError:  # a broker makes the coordinator when the first group comes
                if time.monotonic() > limit:
                    raise
                time.sleep(0.2)

    def _commit(self, wanted: list[TopicPartition]) -> None:
        words = f"the offsets of the consumer group {self.group} could not be written"
        try:
            done = self._consumer.commit(offsets=wanted, asynchronous=False)
        except KafkaException as error:
            raise _explained(cast("KafkaError", error.args[0]), words) from error
        for partition in done or ():
            if partition.error is not None:
                raise _explained(partition.error, words)

    def read(self, partitions: Iterable[int]) -> dict[str, int]:
        """The group's offsets on the topic; a partition without one is left out."""
        asked = [TopicPartition(self._topic, partition) for partition in partitions]
        words = f"the offsets of the consumer group {self.group} could not be read"
        try:
            found = self._consumer.committed(asked, timeout=SECONDS)
        except KafkaException as error:
            raise _explained(cast("KafkaError", error.args[0]), words) from error
        return {str(f.partition): f.offset for f in found if f.offset >= NO_OFFSET}


def _explained(reason: KafkaError, words: str) -> HeadgateError:
    kind = UnavailableError if reason.retriable() else OperationError
    return kind(words, why=reason.str(), fix="nothing is lost: the ledger has them")
