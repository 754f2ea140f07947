"""Rows by key from Parquet files and tables of the lake, by one DuckDB query for many keys."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol, cast

import duckdb

from headgate.errors import OperationError, SettingsError, UnavailableError
from headgate.feeds.rows.model import WholeRow
from headgate.spec.refusal import suggestion

AT_ONCE = 5_000
ZONED = "TIMESTAMP WITH TIME ZONE"


class Queries(Protocol):
    """What answers SQL, as DuckDB over the lake does."""

    def query(self, sql: str) -> list[tuple[object, ...]]: ...


class ParquetQueries:
    """DuckDB alone, for files."""

    def __init__(self) -> None:
        self._connection = duckdb.connect(
            ":memory:", config={"autoinstall_known_extensions": False}
        )
        self._connection.execute("SET TimeZone = 'UTC'")

    def query(self, sql: str) -> list[tuple[object, ...]]:
        try:
            return cast("list[tuple[object, ...]]", self._connection.execute(sql).fetchall())
        except duckdb.Error as error:
            raise OperationError("DuckDB refused a query", why=str(error)) from error

    def close(self) -> None:
        self._connection.close()


class DuckRows:
    """`source` is what stands behind FROM: a scan of the lake, or of files."""

    def __init__(self, queries: Queries, source: str, key: str, version: str | None) -> None:
        self._queries, self._source, self._version = queries, source, version
        self._types = {str(r[0]): str(r[1]) for r in queries.query(f"DESCRIBE FROM {source}")}
        for name in (key, *([version] if version else [])):
            if name not in self._types:
                raise SettingsError(
                    f"{source} has no column `{name}`",
                    why="`reconcile: rows:` names it",
                    fix=suggestion(name, self._types, "columns"),
                )
        self._key = key

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self._types)

    def read(self, keys: Sequence[str]) -> dict[str, WholeRow]:
        found: dict[str, WholeRow] = {}
        for at in range(0, len(keys), AT_ONCE):
            found |= self._read(keys[at : at + AT_ONCE])
        return found

    def _read(self, keys: Sequence[str]) -> dict[str, WholeRow]:
        rows = self._queries.query(
            f"SELECT CAST({_name(self._key)} AS VARCHAR), {self._selected()} FROM {self._source}"
            f" WHERE CAST({_name(self._key)} AS VARCHAR) IN ({', '.join(map(_text, keys))})"
        )
        made = ((str(row[0]), self._made(row[1:])) for row in rows)
        newest: dict[str, WholeRow] = {}
        for key, row in made:
            if key not in newest or _later(row, newest[key]):
                newest[key] = row
        return newest

    def _selected(self) -> str:
        """A point in time without its zone, which would need a library more to be read."""
        return ", ".join(
            f"{_name(name)} AT TIME ZONE 'UTC'" if type_ == ZONED else _name(name)
            for name, type_ in self._types.items()
        )

    def _made(self, values: Sequence[object]) -> WholeRow:
        row = {name: _plain(v) for name, v in zip(self._types, values, strict=True)}
        version = row.get(self._version) if self._version else None
        return WholeRow(row, version if isinstance(version, datetime) else None)


def parquet_source(root: Path, file: str) -> str:
    """A file, a folder of files or a pattern, from the project's root."""
    path = root / file
    pattern = str(path / "*.parquet") if path.is_dir() else str(path)
    if not path.exists() and "*" not in file:
        raise UnavailableError(
            f"{file} is not there",
            why="`reconcile: rows:` reads rows from it",
            fix="check the path",
        )
    return f"read_parquet({_text(pattern)})"


def _later(a: WholeRow, b: WholeRow) -> bool:
    """Of two rows of one key the newer version counts; without versions the later one read."""
    return b.version is None or (a.version is not None and a.version >= b.version)


def _plain(value: object) -> object:
    """A time without a zone is UTC, as everywhere."""
    if isinstance(value, datetime) and value.tzinfo is None:
        return value.replace(tzinfo=UTC)
    return value


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
