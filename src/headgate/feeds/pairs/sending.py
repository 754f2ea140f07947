"""One wave of planted keys: rows into Cassandra first, then the messages of both topics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import Literal, Protocol

from headgate.feeds.cassandra import Cassandra
from headgate.feeds.pairs.model import COLUMNS, Phase
from headgate.feeds.pairs.planting import Planting

Side = Literal["onprem", "cloud"]
KEYSPACE = (
    "CREATE KEYSPACE IF NOT EXISTS {keyspace} WITH replication ="
    " {{'class': 'NetworkTopologyStrategy', '{dc}': 1}}"
)
TABLE = (
    "CREATE TABLE IF NOT EXISTS {table} (pk text PRIMARY KEY, col1 text, col2 decimal,"
    " col3 timestamp, col4 double, last_updated timestamp)"
)


class Writer(Protocol):
    """Where records go."""

    def send(self, topic: str, values: list[bytes | None], keys: list[bytes | None]) -> None: ...

    def flush(self) -> None: ...


@dataclass(frozen=True)
class SentWave:
    """What one wave wrote."""

    phase: Phase
    rows: int
    messages: Mapping[str, int]


def prepare(cassandra: Cassandra, table: str) -> None:
    """Keyspace and table, where they are not there yet."""
    keyspace = table.partition(".")[0]
    dc = cassandra.place.local_dc
    cassandra.execute(KEYSPACE.format(keyspace=keyspace, dc=dc))
    cassandra.execute(TABLE.format(table=table))


def write_rows(cassandra: Cassandra, table: str, planting: Planting, phase: Phase) -> int:
    """The rows that the cloud holds from this wave on."""
    from headgate.store.ops import utc_now

    names = ("pk", *COLUMNS, "last_updated")
    marks = ", ".join("?" * len(names))
    cql = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})"
    return cassandra.write_many(cql, [astuple(r) for r in planting.writes(phase, utc_now())])


def send_messages(
    writer: Writer, topics: Mapping[Side, str], planting: Planting, phase: Phase
) -> dict[str, int]:
    """The messages of the wave, in the order in which they were planned."""
    sent: dict[str, int] = {}
    for side, topic in topics.items():
        messages = [m for m in planting.messages(phase) if m.side == side]
        if messages:
            writer.send(topic, [m.value for m in messages], [m.key for m in messages])
            sent[topic] = len(messages)
    writer.flush()
    return sent
