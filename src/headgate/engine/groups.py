"""Offsets of a consumer group, written without joining it, for the tools that people already use.

They are a copy: what a job has read is known from its table and the ledger alone.
"""

# pyright: reportPrivateImportUsage=false
# The library's documented admin names are re-exported without being marked so.

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Protocol, cast

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicPartition

from headgate.engine.admin import shared_admin
from headgate.errors import HeadgateError, OperationError, UnavailableError

SECONDS = 5.0


def group_of(job: str) -> str:
    """The group that carries a job's offsets."""
    return f"headgate-{job}"


class GroupOffsets:
    """The offsets of one group on one topic."""

    def __init__(self, bootstrap: str, group: str, topic: str) -> None:
        self.group = group
        self._topic = topic
        self._admin = cast("_Admin", cast("object", shared_admin(bootstrap, SECONDS)))

    def write(self, offsets: Mapping[str, int]) -> None:
        """Where the next record of each partition is; refused while someone consumes in the group."""
        wanted = [TopicPartition(self._topic, int(p), offset) for p, offset in offsets.items()]
        asked, limit = (
            [ConsumerGroupTopicPartitions(self.group, wanted)],
            time.monotonic() + SECONDS,
        )
        while True:
            futures = self._admin.alter_consumer_group_offsets(asked, request_timeout=SECONDS)
            try:
                self._result(futures[self.group], "written")
                return
            except UnavailableError:  # a broker makes the coordinator when the first group comes
                if time.monotonic() > limit:
                    raise
                time.sleep(0.2)

    def read(self) -> dict[str, int]:
        """The group's offsets on the topic; a partition without one is left out."""
        asked = [ConsumerGroupTopicPartitions(self.group)]
        futures = self._admin.list_consumer_group_offsets(asked, request_timeout=SECONDS)
        found = self._result(futures[self.group], "read").topic_partitions or ()
        return {str(f.partition): f.offset for f in found if f.topic == self._topic}

    def _result(
        self, future: Future[ConsumerGroupTopicPartitions], verb: str
    ) -> ConsumerGroupTopicPartitions:
        words = f"the offsets of the consumer group {self.group} could not be {verb}"
        try:
            found = future.result(SECONDS + 1)
        except KafkaException as error:
            raise _explained(cast("KafkaError", error.args[0]), words) from error
        except TimeoutError as error:
            raise UnavailableError(words, why="the broker did not answer") from error
        for partition in found.topic_partitions or ():
            if partition.error is not None:
                raise _explained(partition.error, words)
        return found


def _explained(reason: KafkaError, words: str) -> HeadgateError:
    kind = UnavailableError if reason.retriable() else OperationError
    return kind(words, why=reason.str(), fix="nothing is lost: the ledger has them")


class _Admin(Protocol):
    """The calls used here, with the types that the library's own annotations leave open."""

    def alter_consumer_group_offsets(
        self, groups: list[ConsumerGroupTopicPartitions], *, request_timeout: float
    ) -> Mapping[str, Future[ConsumerGroupTopicPartitions]]: ...

    def list_consumer_group_offsets(
        self, groups: list[ConsumerGroupTopicPartitions], *, request_timeout: float
    ) -> Mapping[str, Future[ConsumerGroupTopicPartitions]]: ...
