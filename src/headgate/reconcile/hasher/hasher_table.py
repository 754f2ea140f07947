"""The table that is hashed: rows by key, and how its shape moves away from the contract."""

# The driver ships no types, so what comes from it is unknown to the checker.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from headgate.hashing.hash_contract_types import HashType
from headgate.reconcile.cassandra.rows import Row, RowReader
from headgate.reconcile.cassandra.session import Cassandra, Failure, TableShape
from headgate.reconcile.hasher.column_types import require_types
from headgate.reconcile.hasher.drift import drift_of, require_columns
from headgate.reconcile.hasher.drift_memory import DriftMemory


class HashedTable:
    """Reads the contract's columns; `memory` hears of each column that came or went, once."""

    def __init__(
        self,
        cassandra: Cassandra,
        name: str,
        key: tuple[str, ...],
        fields: tuple[str, ...],
        version: str | None,
        memory: DriftMemory | None = None,
        kinds: Mapping[str, HashType] | None = None,
    ) -> None:
        self._kinds = kinds or {}
        self.name, self.key, self._fields, self._version = name, key, fields, version
        self._cassandra, self._memory = cassandra, memory
        self._reader = self._opened(cassandra.shape(name))

    @property
    def there(self) -> frozenset[str]:
        """The hashed columns that the table has."""
        return frozenset(self._fields) & frozenset(self._reader.shape.columns)

    @property
    def shape(self) -> TableShape:
        return self._reader.shape

    def start(
        self,
        key: str,
        when_row: Callable[[Row | None], None],
        when_failed: Callable[[Failure], None],
    ) -> None:
        self._reader.start(key, when_row, when_failed)

    def probe(self, when_known: Callable[[bool], None]) -> None:
        """Whether a row can be read now, whichever it is."""
        try:
            future = self._cassandra.session.execute_async(
                f"SELECT * FROM {self.shape.quoted} LIMIT 1"
            )
        except Exception:
            when_known(False)
            return

        def answered(_rows: Any) -> None:
            when_known(True)

        def failed(_error: Exception) -> None:
            when_known(False)

        future.add_callbacks(answered, failed)

    def renew(self) -> None:
        """Look at the table's columns again, and read those that it has."""
        shape = self._cassandra.shape(self.name)
        if shape != self.shape:
            self._reader.forget()
            self._reader = self._opened(shape)

    def _opened(self, shape: TableShape) -> RowReader:
        require_columns(shape, self._fields)
        require_types(shape, self._kinds)
        if self._memory is not None:
            self._memory.look(drift_of(shape, self._fields, self._version), shape.table_id)
        return RowReader(self._cassandra, shape, self.key, self._fields, self._version)
