"""One wave of planted keys: rows into Cassandra, then the messages of both topics, part by part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import Literal, Protocol

from headgate.core.ledger.ops_store import utc_now
from headgate.demo.reconcile.model import COLUMNS, Phase
from headgate.demo.reconcile.pairs_planting import Planting
from headgate.reconcile.cassandra.session import Cassandra

Side = Literal["onprem", "cloud"]
KEYSPACE = (
    "CREATE KEYSPACE IF NOT EXISTS {keyspace} WITH replication ="
    " {{'class': 'NetworkTopologyStrategy', '{dc}': 1}}"
)
TABLE = (
    "CREATE TABLE IF NOT EXISTS {table} (pk text PRIMARY KEY, col1 text, col2 decimal,"
    " col3 timestamp, col4 double, last_updated timestamp)"
)


@dataclass(frozen=True)
class Places:
    """The table in Cassandra, and the topic of each side."""

    table: str
    topics: Mapping[Side, str]


class Writer(Protocol):
    """Where records go."""

    def send(self, topic: str, values: list[bytes | None], keys: list[bytes | None]) -> None: ...

    def flush(self) -> None: ...


def prepare(cassandra: Cassandra, table: str) -> None:
    """Keyspace and table, where they are not there yet."""
    keyspace = table.partition(".")[0]
    dc = cassandra.place.local_dc
    cassandra.execute(KEYSPACE.format(keyspace=keyspace, dc=dc))
    cassandra.execute(TABLE.format(table=table))


def send_wave(
    cassandra: Cassandra, writer: Writer, places: Places, planting: Planting, phase: Phase
) -> tuple[int, Counter[str]]:
    """Rows, and messages by topic; the rows of some keys, then their messages, then the next."""
    rows, messages = 0, Counter[str]()
    for keys in planting.parts(phase):
        written = planting.writes(phase, utc_now(), keys)
        rows += cassandra.write_many(_insert(places.table), [astuple(row) for row in written])
        for side, topic in places.topics.items():
            said = [m for m in planting.messages(phase, keys) if m.side == side]
            writer.send(topic, [m.value for m in said], [m.key for m in said])
            messages[topic] += len(said)
        writer.flush()
    return rows, messages


def _insert(table: str) -> str:
    names = ("pk", *COLUMNS, "last_updated")
    marks = ", ".join("?" * len(names))
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})"
