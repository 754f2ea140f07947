"""A dead-letter table written by pyiceberg, for tests that need no Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa

from headgate.config.settings import Settings, load_settings

AT = datetime(2026, 1, 31, 12, tzinfo=UTC)
MOMENT = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema(
    [
        ("job", pa.string()),
        ("revision", pa.string()),
        ("reason_code", pa.string()),
        ("reason", pa.string()),
        ("kafka_topic", pa.string()),
        ("kafka_partition", pa.int32()),
        ("kafka_offset", pa.int64()),
        ("kafka_timestamp", MOMENT),
        ("kafka_key", pa.binary()),
        ("kafka_value", pa.binary()),
        ("kafka_headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
        ("refused_at", MOMENT),
    ]
)


@dataclass(frozen=True)
class DeadLetterRow:
    """One row of the dead-letter table."""

    job: str
    reason_code: str
    topic: str | None
    offset: int | None
    value: bytes | None
    key: bytes | None = b"k"
    headers: Sequence[tuple[str, bytes | None]] = ()
    minutes: int = 0
    partition: int | None = field(default=0)

    def row(self) -> dict[str, object]:
        return {
            "job": self.job,
            "revision": "r1",
            "reason_code": self.reason_code,
            "reason": f"words for {self.reason_code}",
            "kafka_topic": self.topic,
            "kafka_partition": self.partition if self.topic else None,
            "kafka_offset": self.offset,
            "kafka_timestamp": AT,
            "kafka_key": self.key,
            "kafka_value": self.value,
            "kafka_headers": [{"key": k, "value": v} for k, v in self.headers] or None,
            "refused_at": AT + timedelta(minutes=self.minutes),
        }


def environ_at(project: Path, bootstrap: str = "127.0.0.1:9") -> dict[str, str]:
    """Environment variables of a project with a local warehouse and a JDBC catalog."""
    return {
        "HEADGATE_HOME": str(project / "home"),
        "BROKER": "kafka",
        "BOOTSTRAP_SERVERS": bootstrap,
        "CATALOG": "jdbc",
        "STORAGE": "local",
        "WAREHOUSE": f"file://{project / 'warehouse'}",
        "CATALOG_URI": f"jdbc:sqlite:{project / 'catalog.db'}",
        "TOPIC": "orders",
    }


def settings_at(project: Path, bootstrap: str = "127.0.0.1:9") -> Settings:
    """The settings of such a project."""
    return load_settings(project, environ_at(project, bootstrap))


def write_dead_letters(settings: Settings, letters: Sequence[DeadLetterRow]) -> None:
    """Append rows to the dead-letter table, creating it first."""
    from pyiceberg.catalog.sql import SqlCatalog

    file = (settings.catalog_uri or "").removeprefix("jdbc:sqlite:")
    catalog = SqlCatalog("lake", uri=f"sqlite:///{file}", warehouse=settings.warehouse)
    catalog.create_namespace_if_not_exists("headgate")
    table = catalog.create_table_if_not_exists("headgate.dead_letters", schema=SCHEMA)
    table.append(pa.Table.from_pylist([letter.row() for letter in letters], schema=SCHEMA))
    catalog.close()
