"""What must come out, worked out in Python from the topic alone."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any


@dataclass(frozen=True)
class Record:
    """A record as a plain consumer sees it."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]

    def header(self, name: str) -> str | None:
        found = [value for key, value in self.headers if key == name]
        return found[-1].decode() if found and found[-1] is not None else None


def read_topic(bootstrap: str, topic: str) -> list[Record]:
    """All records of a topic, in the order of partition and offset."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "oracle",
            "enable.auto.commit": False,
            "enable.partition.eof": False,
            "fetch.message.max.bytes": 20_000_000,
            "log_level": 0,
        }
    )
    try:
        partitions = [
            TopicPartition(topic, p, 0)
            for p in consumer.list_topics(topic).topics[topic].partitions
        ]
        ends = [consumer.get_watermark_offsets(p) for p in partitions]
        wanted = sum(end - begin for begin, end in ends)
        consumer.assign(partitions)
        found: list[Record] = []
        while len(found) < wanted:
            messages = consumer.consume(min(1000, wanted - len(found)), timeout=20)
            assert messages, f"{len(found)} of {wanted} records of {topic} came"
            found += [_record(message) for message in messages]
        return sorted(found, key=lambda record: (record.partition, record.offset))
    finally:
        consumer.close()


def _record(message: Any) -> Record:
    assert message.error() is None, message.error()
    return Record(
        message.topic(),
        message.partition(),
        message.offset(),
        message.timestamp()[1],
        message.key(),
        message.value(),
        tuple(message.headers() or ()),
    )


def bronze_row(record: Record, types: Mapping[str, str]) -> tuple[Any, ...]:
    """The row that an acceptable record must become; the time of the batch aside."""
    assert record.value is not None
    fields = json.loads(record.value, parse_float=Decimal)
    values = (typed(fields.get(name), kind) for name, kind in types.items())
    return (*values, record.topic, record.partition, record.offset, record.timestamp_ms)


def bronze_rows(records: Iterable[Record], types: Mapping[str, str]) -> Counter[tuple[Any, ...]]:
    return Counter(bronze_row(record, types) for record in records)


def typed(value: Any, kind: str) -> Any:
    """A JSON value as DuckDB gives back a column of that type."""
    if value is None:
        return None
    match kind:
        case "TIMESTAMP":
            return datetime.fromisoformat(value)
        case "TIMESTAMP_LTZ":
            return datetime.fromisoformat(value).replace(tzinfo=UTC)
        case "DATE":
            return date.fromisoformat(value)
        case "DOUBLE":
            return float(value)
        case "DECIMAL":
            return Decimal(value).quantize(Decimal("0.01"))
        case _:
            return value
