"""The records of both sides of a reconciled table, read with a plain consumer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from headgate.core.kafka.engine_topics import Topics
from headgate.core.kafka.reader import Stretch, committed_records
from headgate.demo.reconcile.reconcile_recount import TopicRecord
from headgate.reconcile.reconcile_state import Side

SECONDS = 60.0


def topic_records(bootstrap: str, topics: Mapping[Side, str]) -> Iterator[TopicRecord]:
    """Everything that stands on the topics now."""
    for side, topic in topics.items():
        stretch = Stretch.whole(Topics(bootstrap).found(topic))
        for one in committed_records(bootstrap, stretch, SECONDS):
            read_at = datetime.fromtimestamp(one.millis / 1000, UTC)
            yield TopicRecord(side, one.partition, one.offset, read_at, one.key, one.value)
