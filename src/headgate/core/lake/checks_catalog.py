"""Which metadata file is a table's current one, asked of the catalog that this profile names."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast
from urllib.parse import quote

from headgate.config.settings import Settings
from headgate.core.lake.metadata import SUFFIX, newest_hadoop_file, plain_path
from headgate.errors import SettingsError, UnavailableError

if TYPE_CHECKING:
    import duckdb
    from pyiceberg.catalog import Catalog

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
