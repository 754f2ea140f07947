"""Read Iceberg tables with DuckDB: bound to a table's current version at each call, no Spark.

Extensions come from installed wheels only, a query is given up after ICEBERG_QUERY_TIMEOUT seconds.
"""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Self, cast

import duckdb

from headgate.config.settings import Settings
from headgate.core.lake.catalog import (
    Snapshot,
    TableLocation,
    Tables,
    open_tables,
    plain_path,
    read_location,
    read_snapshots,
)
from headgate.errors import OperationError, SettingsError, UnavailableError

# avro comes first: the iceberg extension needs it.
LOCAL_EXTENSIONS = ("avro", "iceberg")
S3_STORAGES = frozenset({"minio", "aws_s3"})
METADATA_GONE = "Iceberg metadata file not found"
MAKERS = {"bronze": "bronze", "silver": "silver", "headgate": "bronze"}

Row = tuple[object, ...]


class Lake:
    """The tables at their current versions, asked anew at each call; names are like `bronze.x`."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, tables: Tables, timeout: float
    ) -> None:
        self._connection = connection
        self._tables = tables
        self._timeout = timeout

    @classmethod
    def open(cls, settings: Settings) -> Self:
        """Raises UnavailableError when DuckDB's extensions are not installed."""
        connection = connect(settings)
        return cls(connection, open_tables(settings, connection), settings.iceberg_query_timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._tables.close()
        self._connection.close()

    def exists(self, table: str) -> bool:
        return self._metadata_file(table) is not None

    def location(self, table: str) -> TableLocation:
        """Where the table is now; raises UnavailableError when it is not there yet."""
        file = self._metadata_file(table)
        if file is None:
            raise _missing(table)
        path = plain_path(file)
        rows = self.query(f"SELECT content FROM read_text({quoted(path)})")
        if not rows:
            raise _unreadable(f"{path} is gone")
        return read_location(path, str(rows[0][0]))

    def _metadata_file(self, table: str) -> str | None:
        try:
            return self._tables.metadata_file(table)
        except duckdb.Error as error:  # the hadoop catalog is asked through DuckDB
            raise _unreadable(str(error)) from error

    def scan_sql(self, table: str) -> str:
        """A table function to select from, bound to the table's current version."""
        return scan(self.location(table))

    def count(self, table: str) -> int:
        return cast("int", self.query(f"SELECT count(*) FROM {self.scan_sql(table)}")[0][0])

    def snapshots(self, table: str) -> list[Snapshot]:
        """All snapshots that the metadata still lists, oldest first."""
        return read_snapshots(self.location(table).metadata)

    def query(self, sql: str) -> list[Row]:
        """The rows of one statement, given up after ICEBERG_QUERY_TIMEOUT seconds."""
        try:
            with interrupted_after(self._connection, self._timeout):
                return cast("list[Row]", self._connection.execute(sql).fetchall())
        except duckdb.InterruptException as error:
            raise UnavailableError(
                f"a query took longer than {self._timeout:g} s",
                why=_first_line(sql),
                fix="raise ICEBERG_QUERY_TIMEOUT or try again when the machine is less busy",
            ) from error
        except duckdb.Error as error:
            if _is_unreadable(error):
                raise _unreadable(str(error)) from error
            raise OperationError("DuckDB refused a query", why=str(error), fix=sql) from error


def scan(location: TableLocation) -> str:
    return (
        f"iceberg_scan({quoted(location.folder)}, allow_moved_paths=true, "
        f"version={quoted(location.version)})"
    )


def quoted(text: str) -> str:
    """A DuckDB string literal; only the quote itself is special there."""
    return "'" + text.replace("'", "''") + "'"


def connect(settings: Settings) -> duckdb.DuckDBPyConnection:
    """An in-memory DuckDB that can read this storage, loaded from the installed wheels only."""
    files = tuple(extension_file(name) for name in extensions(settings))
    if settings.storage in S3_STORAGES:  # a secret is the whole database's: it is not shared
        connection = _new_database(files)
        connection.execute(secret_sql(settings))
    else:
        connection = _shared_database(files).cursor()
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def _new_database(files: tuple[Path, ...]) -> duckdb.DuckDBPyConnection:
    # Without a file cache every query reads the tables' files anew, as a check has to.
    connection = duckdb.connect(
        ":memory:",
        config={"autoinstall_known_extensions": False, "enable_external_file_cache": False},
    )
    for file in files:
        connection.load_extension(str(file))
    return connection


# Loading the extensions takes a quarter of a CPU second: a process does it once, and each lake is
# a session of its own on that database.
_shared_database = cache(_new_database)


def extensions(settings: Settings) -> tuple[str, ...]:
    """The extensions that this storage needs, in the order in which they load."""
    if settings.storage == "local":
        return LOCAL_EXTENSIONS
    if settings.storage in S3_STORAGES:
        return (*LOCAL_EXTENSIONS, "httpfs")
    raise SettingsError(
        f"DuckDB cannot read STORAGE={settings.storage} here",
        why="reading is built for local files and S3",
        fix="set STORAGE=local",
    )


def extension_file(name: str) -> Path:
    """The extension's file inside its wheel, which must be of DuckDB's own version."""
    spec = importlib.util.find_spec(f"duckdb_extension_{name}")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        file = Path(folder) / "extensions" / f"v{duckdb.__version__}" / f"{name}.duckdb_extension"
        if file.is_file():
            return file
    raise UnavailableError(
        f"DuckDB's {name} extension is not installed",
        why=f"no wheel of it for DuckDB {duckdb.__version__} is in this environment",
        fix=f"pip install duckdb-extension-{name}=={duckdb.__version__}",
    )


def secret_sql(settings: Settings) -> str:
    """How DuckDB reaches S3."""
    parts = {
        "KEY_ID": settings.effective_s3_key,
        "SECRET": settings.effective_s3_secret,
        "REGION": settings.aws_region,
        "ENDPOINT": s3_endpoint(settings),
        "URL_STYLE": url_style(settings),
    }
    given = [f"{name} {quoted(value)}" for name, value in parts.items() if value]
    options = ", ".join([*given, f"USE_SSL {settings.duckdb_s3_use_ssl}"])
    return f"CREATE OR REPLACE SECRET lake (TYPE s3, {options})"


def s3_endpoint(settings: Settings) -> str:
    """host:port without a scheme; AWS has its own unless DUCKDB_S3_ENDPOINT says otherwise."""
    if settings.storage == "aws_s3" and not settings.duckdb_s3_endpoint:
        return f"s3.{settings.aws_region}.amazonaws.com"
    return settings.effective_duckdb_endpoint


def url_style(settings: Settings) -> str:
    return "path" if settings.s3_path_style else "vhost"


def _missing(table: str) -> UnavailableError:
    maker = MAKERS.get(table.partition(".")[0])
    return UnavailableError(
        f"the table {table} is not there yet",
        why=f"the {maker} job makes it" if maker else "no job has made it",
        fix=f"headgate job run {maker}" if maker else "check the name with `headgate lake count`",
    )


def _is_unreadable(error: duckdb.Error) -> bool:
    """Files or their storage are away; the iceberg extension has no type of its own for that."""
    return isinstance(error, duckdb.IOException) or METADATA_GONE in str(error)


def _unreadable(why: str) -> UnavailableError:
    return UnavailableError(
        "files of the lake cannot be read",
        why=why,
        fix="check WAREHOUSE and its storage; if maintenance removed them just now, try again",
    )


@contextmanager
def interrupted_after(connection: duckdb.DuckDBPyConnection, seconds: float) -> Generator[None]:
    """DuckDB has no statement timeout of its own."""
    timer = threading.Timer(seconds, connection.interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _first_line(sql: str) -> str:
    return sql.strip().splitlines()[0][:200]
