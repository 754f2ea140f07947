"""The records of both sides of a reconciled table, read with a plain consumer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from headgate.checks.reconcile_recount import TopicRecord
from headgate.checks.topic_reader import Stretch, committed_records
from headgate.compile.reconcile.state import Side
from headgate.engine.topics import Topics

SECONDS = 60.0


def topic_records(bootstrap: str, topics: Mapping[Side, str]) -> Iterator[TopicRecord]:
    """Everything that stands on the topics now."""
    for side, topic in topics.items():
        found = Topics(bootstrap).found(topic)
        stretch = Stretch(topic, found.begin, found.end)
        for one in committed_records(bootstrap, stretch, SECONDS):
            if one.message is not None:
                millis = one.message.timestamp()[1]
                read_at = datetime.fromtimestamp(millis / 1000, UTC)
                key, value = one.message.key(), one.message.value()
                yield TopicRecord(
                    side, one.partition, one.offset, read_at, _bytes(key), _bytes(value)
                )


def _bytes(value: bytes | str | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value
