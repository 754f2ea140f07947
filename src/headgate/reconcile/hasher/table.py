"""The Cassandra table that is hashed: rows by key, its column types, and its drift from the hash contract."""

# The driver ships no types, so what comes from it is unknown to the checker.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from headgate.core.runtime.journal import whole_file
from headgate.declarations.errors import suggestion
from headgate.errors import SettingsError
from headgate.hashing.types import HashType
from headgate.reconcile.cassandra.rows import Row, RowReader
from headgate.reconcile.cassandra.session import Cassandra, Failure, TableShape

_WHOLE = ("tinyint", "smallint", "int", "bigint", "varint", "counter")
SCALARS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("text", "varchar", "ascii"), ("string", "uuid")),
    "boolean": ("boolean",),
    **dict.fromkeys(_WHOLE, ("integer", "decimal", "double")),
    "decimal": ("decimal",),
    **dict.fromkeys(("float", "double"), ("double",)),
    "timestamp": ("timestamp",),
    "date": ("date",),
    **dict.fromkeys(("uuid", "timeuuid"), ("uuid",)),
    "blob": ("binary",),
}
COLLECTIONS: Mapping[str, tuple[str, ...]] = {
    "list": ("list", "set"),
    "set": ("set",),
    "map": ("map",),
}


def require_types(shape: TableShape, kinds: Mapping[str, HashType]) -> None:
    """Refuse a contract that reads a column as something that it is not."""
    for name, kind in kinds.items():
        column = shape.columns.get(name)
        if column is not None and not fits(column.cql_type, kind):
            allowed = ", ".join(allowed_of(column.cql_type)) or "none"
            raise SettingsError(
                f"{shape.name}: the column {name} is {column.cql_type}"
                f" and cannot be hashed as {kind.name}",
                why=f"allowed: {allowed}",
                fix="correct the field's type in the hash contract, or take the field out",
            )


def fits(cql_type: str, kind: HashType) -> bool:
    """Whether values of the column are values of the logical type."""
    word, inner = _parts(cql_type)
    if word == "frozen":
        return fits(inner[0], kind)
    if kind.name not in allowed_of(cql_type):
        return False
    return all(fits(part, item) for part, item in zip(inner, kind.items, strict=True))


def allowed_of(cql_type: str) -> tuple[str, ...]:
    word, inner = _parts(cql_type)
    if word == "frozen":
        return allowed_of(inner[0])
    return COLLECTIONS.get(word, ()) if inner else SCALARS.get(word, ())


def _parts(cql_type: str) -> tuple[str, list[str]]:
    """`map<int, frozen<list<text>>>` as map, and [int, frozen<list<text>>]."""
    word, opened, rest = cql_type.strip().partition("<")
    if not opened:
        return word, []
    parts, depth = [""], 0
    for sign in rest.rpartition(">")[0]:
        depth += (sign == "<") - (sign == ">")
        if sign == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += sign
    return word, [part.strip() for part in parts]


@dataclass(frozen=True)
class Drift:
    """Columns that no hash has, and columns of the contract that the table has no more."""

    new: tuple[str, ...]
    removed: tuple[str, ...]

    def since(self, before: Drift) -> Drift:
        """Only what was not known before."""
        return Drift(
            tuple(name for name in self.new if name not in before.new),
            tuple(name for name in self.removed if name not in before.removed),
        )

    def lines(self, table: str) -> list[str]:
        """For a person: what it means for the hashes."""
        said = [
            f"{table} has a column `{name}` that the contract does not: it is not hashed"
            for name in self.new
        ]
        return said + [
            f"{table} has no column `{name}` any more: it hashes as null, so its keys will differ"
            for name in self.removed
        ]


NOTHING = Drift((), ())


def require_columns(shape: TableShape, fields: Collection[str]) -> None:
    """Refuse a contract with a column that the table never had: a slip, and all keys would differ."""
    for name in fields:
        if name not in shape.columns and name not in shape.dropped:
            raise SettingsError(
                f"{shape.name} has no column `{name}`, and never had one",
                why="the hash contract names it: it would hash as null in every row",
                fix=suggestion(name, shape.columns, "columns"),
            )


def drift_of(shape: TableShape, fields: Collection[str], version: str | None) -> Drift:
    """What the table has beside key, version and contract, and what of the contract it lacks."""
    known = {*fields, *shape.primary_key, *([version] if version else [])}
    return Drift(
        tuple(sorted(name for name in shape.columns if name not in known)),
        tuple(name for name in fields if name not in shape.columns),
    )


# What came or went, and whether anything was known before: the first look finds no drift.
Note = Callable[[Drift, bool], None]


class DriftMemory:
    """Kept in a file, so that a start is no drift; a table that was made anew is looked at anew."""

    def __init__(self, file: Path, note: Note) -> None:
        self._file, self._note = file, note

    def look(self, drift: Drift, table_id: str) -> None:
        known = self._read(table_id)
        if drift == known:
            return
        self._note(drift.since(known or NOTHING), known is not None)
        self._write(drift, table_id)

    def _read(self, table_id: str) -> Drift | None:
        """None also for a file that cannot be read: it is made anew from what is there now."""
        try:
            found: Any = orjson.loads(self._file.read_bytes())
            known = Drift(tuple(found["new"]), tuple(found["removed"]))
            return known if found["table_id"] == table_id else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _write(self, drift: Drift, table_id: str) -> None:
        told = {"table_id": table_id, "new": drift.new, "removed": drift.removed}
        with whole_file(self._file) as part:
            part.write_bytes(orjson.dumps(told) + b"\n")


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
