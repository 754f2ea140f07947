"""Rows by key from Parquet files and tables of the lake, by one DuckDB query for many keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol, cast

import duckdb

from headgate.declarations.refusal import suggestion
from headgate.errors import OperationError, SettingsError, UnavailableError
from headgate.reconcile.model import WholeRow

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
        except duckdb.IOException as error:
            raise UnavailableError(
                "files with rows cannot be read",
                why=str(error),
                fix="check the path, and try again",
            ) from error
        except duckdb.Error as error:
            raise OperationError("DuckDB refused a query", why=str(error)) from error

    def close(self) -> None:
        self._connection.close()


class DuckRows:
    """`source` says what stands behind FROM, a scan of the lake or of files, anew at each reading.

    A scan is of one version of its table: one that is kept would never see what came later.
    """

    def __init__(
        self, queries: Queries, source: Callable[[], str], key: str, version: str | None
    ) -> None:
        self._queries, self._source, self._key, self._version = queries, source, key, version
        self._described = ""
        self._types: dict[str, str] = {}
        self._current()

    @property
    def columns(self) -> tuple[str, ...]:
        """Those of the last reading."""
        return tuple(self._types)

    def read(self, keys: Sequence[str]) -> dict[str, WholeRow]:
        """The rows of these keys, all from one version of the source: its current one."""
        source, found = self._current(), dict[str, WholeRow]()
        for at in range(0, len(keys), AT_ONCE):
            found |= self._read(source, keys[at : at + AT_ONCE])
        return found

    def _current(self) -> str:
        """The source as it is now; its columns are looked at again when it is another one."""
        source = self._source()
        if source != self._described:
            self._types = self._types_of(source)
            self._described = source
        return source

    def _types_of(self, source: str) -> dict[str, str]:
        types = {str(r[0]): str(r[1]) for r in self._queries.query(f"DESCRIBE FROM {source}")}
        for name in (self._key, *([self._version] if self._version else [])):
            if name not in types:
                raise SettingsError(
                    f"{source} has no column `{name}`",
                    why="`reconcile: rows:` names it",
                    fix=suggestion(name, types, "columns"),
                )
        return types

    def _read(self, source: str, keys: Sequence[str]) -> dict[str, WholeRow]:
        rows = self._queries.query(
            f"SELECT CAST({_name(self._key)} AS VARCHAR), {self._selected()} FROM {source}"
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
