"""Rows by key from Cassandra, many at once."""

from __future__ import annotations

from collections.abc import Sequence

from headgate.reconcile.cassandra.session import Cassandra, TableShape
from headgate.reconcile.model import WholeRow


class CassandraRows:
    """All columns of a table that are not its key; `key` may be several, separated by commas."""

    def __init__(self, cassandra: Cassandra, table: str, key: str, version: str | None) -> None:
        self.cassandra, self.table, self.version = cassandra, table, version
        self.key = tuple(name.strip() for name in key.split(","))
        self.shape: TableShape = cassandra.shape(table)
        columns = [name for name in self.shape.columns if name not in self.key]
        self._reader = cassandra.reader(table, self.key, columns, version)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.shape.columns)

    def read(self, keys: Sequence[str]) -> dict[str, WholeRow]:
        return {
            key: WholeRow(row.values, row.version, row.written)
            for key, row in self._reader.read_many(keys)
            if row is not None
        }
