"""The rows that bronze and silver must hold, computed in Python from the topic alone."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import ROUND_HALF_UP, Decimal
from typing import Any


@dataclass(frozen=True)
class Record:
    """A record as a plain Kafka consumer reads it."""

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
    """All committed records of a topic, by partition and offset."""
    from confluent_kafka import Consumer, KafkaError, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "oracle",
            "enable.auto.commit": False,
            # Ends of transactions and what they aborted take offsets too: counting does not do.
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "fetch.message.max.bytes": 20_000_000,
            # So long the broker waits at the end of a partition before it says that it is one.
            "fetch.wait.max.ms": 20,
            "log_level": 0,
        }
    )
    try:
        unread = set(consumer.list_topics(topic).topics[topic].partitions)
        consumer.assign([TopicPartition(topic, partition, 0) for partition in unread])
        found: list[Record] = []
        while unread:
            # One by one: `consume` would wait for its whole number of messages at the end.
            message = consumer.poll(60)
            assert message is not None, f"{len(found)} records of {topic} came, {unread} have more"
            error = message.error()
            if error is not None and error.code() == KafkaError._PARTITION_EOF:
                unread.discard(message.partition())
            else:
                found.append(_record(message))
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


def expected_bronze_row(record: Record, types: Mapping[str, str]) -> tuple[Any, ...]:
    """The bronze row of an accepted record, without the batch's ingestion time."""
    assert record.value is not None
    fields = json.loads(record.value, parse_float=Decimal)
    values = (typed_value(fields.get(name), kind) for name, kind in types.items())
    return (*values, record.topic, record.partition, record.offset, record.timestamp_ms)


def expected_bronze(
    records: Iterable[Record], types: Mapping[str, str]
) -> Counter[tuple[Any, ...]]:
    """The bronze rows of accepted records, as a multiset."""
    return Counter(expected_bronze_row(record, types) for record in records)


def typed_value(value: Any, kind: str) -> Any:
    """A JSON value as DuckDB returns a column of that type."""
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


@dataclass(frozen=True)
class ExpectedSilver:
    """The rows that silver must hold, and how many bronze rows were duplicates or filtered out."""

    rows: Counter[tuple[Any, ...]]
    duplicates: int
    filtered: int


def expected_silver(
    bronze: Iterable[Mapping[str, Any]], names: Sequence[str] = ("id", "at")
) -> ExpectedSilver:
    """Filter, cast, and keep the newest of each key, as the test dataset declares it."""
    given = list(bronze)
    clean = [row for row in given if passes_filters(row)]
    newest: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    for row in clean:
        key = tuple(row[name] for name in names)
        if key not in newest or version_order(row) > version_order(newest[key]):
            newest[key] = row
    rows = Counter(expected_silver_row(row) for row in newest.values())
    return ExpectedSilver(rows, len(clean) - len(newest), len(given) - len(clean))


def passes_filters(row: Mapping[str, Any]) -> bool:
    """The filters of the test dataset, and that every value fits its silver type."""
    amount, at, id_ = row["amount"], row["at"], row["id"]
    fits = amount is None or abs(round_to_cents(amount)) < 10**8
    sound = amount is None or amount >= 0
    return fits and sound and (at is None or at.year == 2024) and (id_ is None or id_ < 2**31)


def version_order(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return row["kafka_timestamp"], row["kafka_partition"], row["kafka_offset"]


def round_to_cents(amount: float) -> Decimal:
    return Decimal(repr(amount)).quantize(Decimal("0.01"), ROUND_HALF_UP)


def surrogate_key(*values: object) -> str:
    lengths = [-1 if value is None else len(str(value)) for value in values]
    parts = [*lengths, *(value for value in values if value is not None)]
    return hashlib.md5("|".join(map(str, parts)).encode(), usedforsecurity=False).hexdigest()


def expected_silver_row(row: Mapping[str, Any]) -> tuple[Any, ...]:
    at, amount = row["at"], row["amount"]
    return (
        surrogate_key(row["id"], at),
        row["id"],
        at,
        None if amount is None else round_to_cents(amount),
        row["name"],
        at.date() if at else None,
        row["kafka_partition"],
        row["kafka_offset"],
    )
