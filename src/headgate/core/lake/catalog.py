"""Find a table's current Iceberg metadata file, and read its location and snapshots from it.

The profile's catalog is asked: folders (hadoop), the SQLite file (jdbc) or a service (rest). No Spark.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast
from urllib.parse import quote

import orjson
from pydantic import BaseModel, ConfigDict, Field

from headgate.config.settings import Settings
from headgate.errors import SettingsError, UnavailableError

if TYPE_CHECKING:
    import duckdb
    from pyiceberg.catalog import Catalog


SUFFIX = ".metadata.json"
_HADOOP_FILE = re.compile(r"v(\d+)\.metadata\.json")


@dataclass(frozen=True)
class TableLocation:
    """A table at one version: its folder, and the metadata file that version names."""

    folder: str
    version: str
    snapshot_id: int | None
    committed_at: datetime
    metadata: Mapping[str, object]


@dataclass(frozen=True)
class Snapshot:
    """One snapshot; `in_history` is false for a staged or rolled-back one."""

    id: int
    parent_id: int | None
    timestamp: datetime
    operation: str
    summary: Mapping[str, str]
    in_history: bool


class _SnapshotEntry(BaseModel):
    model_config = ConfigDict(frozen=True)

    id: int = Field(alias="snapshot-id")
    parent_id: int | None = Field(None, alias="parent-snapshot-id")
    timestamp_ms: int = Field(alias="timestamp-ms")
    summary: dict[str, str] = {}


class _Metadata(BaseModel):
    model_config = ConfigDict(frozen=True)

    updated_ms: int = Field(alias="last-updated-ms")
    current_id: int | None = Field(None, alias="current-snapshot-id")
    snapshots: tuple[_SnapshotEntry, ...] = ()

    @property
    def current(self) -> _SnapshotEntry | None:
        """The current snapshot; -1 or nothing stands for a table without one."""
        return next((entry for entry in self.snapshots if entry.id == self.current_id), None)


def plain_path(uri: str) -> str:
    """A place as DuckDB takes it: a bare path for local files, `s3://` for S3."""
    if uri.startswith("file:"):
        return "/" + uri.removeprefix("file:").lstrip("/")
    return "s3://" + uri.removeprefix("s3a://") if uri.startswith("s3a://") else uri


def newest_hadoop_file(paths: Iterable[str]) -> str | None:
    """The highest `v<N>.metadata.json`: the version hint can be stale after a kill."""
    numbered = [(int(match[1]), path) for path in paths if (match := _hadoop_match(path))]
    return max(numbered)[1] if numbered else None


def _hadoop_match(path: str) -> re.Match[str] | None:
    return _HADOOP_FILE.fullmatch(path.rsplit("/", 1)[-1])


def read_location(file: str, text: str) -> TableLocation:
    """The location that the metadata file `file` with content `text` describes."""
    folder, _, name = file.rpartition("/metadata/")
    metadata = _Metadata.model_validate_json(text)
    current = metadata.current
    hadoop = _HADOOP_FILE.fullmatch(name)
    return TableLocation(
        folder=folder,
        version=hadoop[1] if hadoop else name.removesuffix(SUFFIX),
        snapshot_id=current.id if current else None,
        committed_at=_time(current.timestamp_ms if current else metadata.updated_ms),
        metadata=cast("dict[str, object]", orjson.loads(text)),
    )


def read_snapshots(metadata: Mapping[str, object]) -> list[Snapshot]:
    """All snapshots, oldest first."""
    parsed = _Metadata.model_validate(metadata)
    history = _history(parsed)
    return sorted(
        (_snapshot(entry, entry.id in history) for entry in parsed.snapshots),
        key=lambda snapshot: snapshot.timestamp,
    )


def _history(metadata: _Metadata) -> frozenset[int]:
    parents = {entry.id: entry.parent_id for entry in metadata.snapshots}
    seen: set[int] = set()
    at = metadata.current_id
    while at in parents and at not in seen:
        seen.add(at)
        at = parents[at]
    return frozenset(seen)


def _snapshot(entry: _SnapshotEntry, in_history: bool) -> Snapshot:
    return Snapshot(
        id=entry.id,
        parent_id=entry.parent_id,
        timestamp=_time(entry.timestamp_ms),
        operation=entry.summary.get("operation", ""),
        summary=entry.summary,
        in_history=in_history,
    )


def _time(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


CATALOG = "lake"
SQLITE = "jdbc:sqlite:"
BUSY_SECONDS = 30.0
CURRENT = (
    "SELECT metadata_location FROM iceberg_tables"
    " WHERE catalog_name = ? AND table_namespace = ? AND table_name = ?"
)


class Tables(Protocol):
    """A catalog as a reader sees it."""

    def metadata_file(self, table: str) -> str | None:
        """The table's current metadata file; None when there is no such table."""
        ...

    def close(self) -> None: ...


def open_tables(settings: Settings, connection: duckdb.DuckDBPyConnection) -> Tables:
    """Nothing is opened before the first table is asked for."""
    if settings.catalog == "hadoop":
        return FolderTables(settings.warehouse, connection)
    if settings.catalog == "jdbc" and (file := _sqlite_file(settings)):
        return SqliteTables(settings, file)
    return CatalogTables(settings, lambda: _rest(settings))


class FolderTables:
    """The hadoop catalog, which is the folders themselves; DuckDB lists them, on S3 as well."""

    def __init__(self, warehouse: str, connection: duckdb.DuckDBPyConnection) -> None:
        self._root = plain_path(warehouse).rstrip("/")
        self._connection = connection

    def metadata_file(self, table: str) -> str | None:
        pattern = f"{self._root}/{table.replace('.', '/')}/metadata/v*{SUFFIX}"
        found = self._connection.execute("FROM glob(?)", [pattern]).fetchall()
        return newest_hadoop_file(path for (path,) in cast("list[tuple[str]]", found))

    def close(self) -> None:
        """The connection belongs to the caller."""


class SqliteTables:
    """The jdbc catalog on SQLite, asked by its one query: pyiceberg would bring pandas along."""

    def __init__(self, settings: Settings, file: Path) -> None:
        self._settings, self._file = settings, file

    def metadata_file(self, table: str) -> str | None:
        if not self._file.is_file():
            return None
        # rw: a reader must be able to roll back what a killed writer left, but never make the file.
        address = f"file:{quote(str(self._file.absolute()))}?mode=rw"
        try:
            with closing(sqlite3.connect(address, uri=True, timeout=BUSY_SECONDS)) as database:
                row = database.execute(CURRENT, (CATALOG, *table.rsplit(".", 1))).fetchone()
        except sqlite3.Error as error:
            if "no such table" in str(error):  # no engine has opened the catalog yet
                return None
            raise _away(self._settings, error) from error
        return str(row[0]) if row else None

    def close(self) -> None:
        """Nothing is kept open."""


class CatalogTables:
    """A catalog that pyiceberg talks to; connected at first need, since that takes a second."""

    def __init__(self, settings: Settings, connect: Callable[[], Catalog]) -> None:
        self._settings = settings
        self._connect = connect
        self._catalog: Catalog | None = None

    def metadata_file(self, table: str) -> str | None:
        from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

        try:
            self._catalog = self._catalog or self._connect()
            return self._catalog.load_table(table).metadata_location
        except (NoSuchTableError, NoSuchNamespaceError):
            return None
        except Exception as error:
            self.close()
            raise _away(self._settings, error) from error

    def close(self) -> None:
        if self._catalog is not None:
            self._catalog.close()
        self._catalog = None


def _sqlite_file(settings: Settings) -> Path:
    uri = settings.need("catalog_uri")
    if not uri.startswith(SQLITE):
        raise SettingsError(
            "DuckDB cannot find tables through this CATALOG_URI",
            why=f"{settings.shown('catalog_uri')} is not SQLite",
            fix=f"write {SQLITE}<file>, or set CATALOG=rest",
        )
    return Path(uri.removeprefix(SQLITE))


def _rest(settings: Settings) -> Catalog:
    from pyiceberg.catalog.rest import RestCatalog

    return RestCatalog(
        CATALOG,
        uri=settings.need("catalog_uri"),
        warehouse=settings.warehouse_s3_path,
        **_files(settings),
    )


def _files(settings: Settings) -> dict[str, str]:
    """How pyiceberg reaches the metadata files."""
    given = {
        "s3.endpoint": settings.s3_endpoint,
        "s3.access-key-id": settings.effective_s3_key,
        "s3.secret-access-key": settings.effective_s3_secret,
        "s3.region": settings.aws_region,
    }
    return {} if settings.storage == "local" else {k: v for k, v in given.items() if v}


def _away(settings: Settings, error: Exception) -> UnavailableError:
    fix = "check CATALOG_URI, and the space left on the disk"
    if settings.catalog == "rest":
        fix = (
            "start that catalog or correct CATALOG_URI; "
            "`headgate config select env/embedded.env` uses an embedded one"
        )
    return UnavailableError(
        f"the {settings.catalog} catalog does not answer",
        why=f"{settings.shown('catalog_uri')}: {type(error).__name__}: {error}",
        fix=fix,
    )
