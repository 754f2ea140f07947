"""Opens the ops store's database: connections, one writer at a time, migrations under a lock.

`connect` returns an engine on a schema of version `HEAD`; a store of another version is refused. `writing`
is a write transaction that excludes all other writers, so that what was read in it is still true when it
writes. `explain_failure` turns a failure of the database itself into an error with advice.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from sqlalchemy import (
    Connection,
    Engine,
    Table,
    and_,
    create_engine,
    delete,
    event,
    insert,
    make_url,
    text,
)
from sqlalchemy.exc import (
    DatabaseError,
    DBAPIError,
    NoSuchModuleError,
    OperationalError,
    ProgrammingError,
)
from sqlalchemy.pool import ConnectionPoolEntry

from headgate.config.env_files import PRIVATE_FILE, PRIVATE_FOLDER
from headgate.errors import ConflictError, SettingsError, UnavailableError

HEAD = "0013"
MIGRATIONS = Path(__file__).parents[2] / "migrations"
BUSY_SECONDS = 30
WRITES = "headgate_writes"
LOCK_SECONDS = "headgate_lock_seconds"
# PostgreSQL's code; SQLite has words alone.
UNDEFINED_TABLE = "42P01"
# Any two numbers will do, as long as every Headgate uses the same ones in one database.
MIGRATION_LOCK, WRITE_LOCK = 7_042_771, 7_042_772


def connect(url: str) -> Engine:
    """An engine on an up-to-date schema; two processes may do this at once."""
    try:
        engine = _engine(url)
        if schema_version(engine) != HEAD:
            migrate(engine)
    except (NoSuchModuleError, ModuleNotFoundError) as error:
        raise SettingsError(
            "OPS_STORE_URL names a database whose driver is not installed",
            why=str(error),
            fix="install the driver (PostgreSQL: pip install psycopg), or use a sqlite:/// URL",
        ) from error
    except (OSError, DBAPIError, sqlite3.Error) as error:
        raise _unavailable("the ops store cannot be opened", error) from error
    return engine


def explain_failure(error: BaseException) -> UnavailableError | None:
    """A failure of the database itself (full disk, locked, away) as an error of ours, else None."""
    # A spoilt file is a plain DatabaseError; its other subclasses are faults of a statement.
    spoilt = type(error) in (DatabaseError, sqlite3.DatabaseError)
    if spoilt or isinstance(error, (OperationalError, sqlite3.OperationalError)):
        return _unavailable("the ops store did not answer", error)
    return None


def _unavailable(what: str, error: BaseException) -> UnavailableError:
    return UnavailableError(
        what,
        why=str(getattr(error, "orig", None) or error),
        fix="check OPS_STORE_URL, the folder's rights and the space left on the disk",
    )


def _engine(url: str) -> Engine:
    parsed = make_url(url)
    if parsed.get_backend_name() != "sqlite":
        engine = create_engine(parsed, pool_pre_ping=True)
        event.listen(engine, "begin", _begin_elsewhere)
        return engine
    if parsed.database and not parsed.database.startswith((":memory:", "file:")):
        make_private_file(Path(parsed.database))
    engine = create_engine(parsed, connect_args={"timeout": BUSY_SECONDS})
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def make_private_file(path: Path) -> None:
    """Make a file that its owner alone may read, and its folder; SQLite's own files follow its mode.

    One that others may read but not write has that from a umask and loses it; one that a group may
    write was meant to be shared.
    """
    path.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, PRIVATE_FILE))
    for file in (path, *(path.with_name(path.name + end) for end in ("-wal", "-shm", ".lock"))):
        with suppress(FileNotFoundError):
            found = file.stat()
            if found.st_uid == os.geteuid() and found.st_mode & 0o044 and not found.st_mode & 0o022:
                file.chmod(PRIVATE_FILE)


def _prepare_sqlite(connection: Any, _entry: ConnectionPoolEntry) -> None:
    # Python's own transaction handling would begin late, after a read, and then fail to upgrade.
    connection.isolation_level = None
    connection.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000}")
    connection.execute("PRAGMA foreign_keys = ON")


def _begin_sqlite(connection: Connection) -> None:
    options = connection.get_execution_options()
    if not options.get(WRITES):
        connection.exec_driver_sql("BEGIN")
        return
    seconds: float = options.get(LOCK_SECONDS, BUSY_SECONDS)
    # A PRAGMA lasts as long as the connection, which others use after this one.
    connection.exec_driver_sql(f"PRAGMA busy_timeout = {round(seconds * 1000)}")
    try:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    finally:
        connection.exec_driver_sql(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000}")


def _begin_elsewhere(connection: Connection) -> None:
    # What BEGIN IMMEDIATE does on SQLite: one writer at a time, so that look-then-write is safe.
    options = connection.get_execution_options()
    if not options.get(WRITES):
        return
    if LOCK_SECONDS in options:
        # 0 would mean for ever.
        milliseconds = max(1, round(options[LOCK_SECONDS] * 1000))
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = {milliseconds}")
    connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({WRITE_LOCK})")


@contextmanager
def writing(engine: Engine, lock_seconds: float | None = None) -> Generator[Connection, None, None]:
    """One write transaction; no other process or thread writes meanwhile.

    A DBAPIError when another one still writes after `lock_seconds`.
    """
    limit = {} if lock_seconds is None else {LOCK_SECONDS: lock_seconds}
    options: dict[str, Any] = {WRITES: True, **limit}
    with engine.connect().execution_options(**options) as connection, connection.begin():
        yield connection


def replace_row(db: Connection, table: Table, /, **row: object) -> None:
    """Write the row in the place of the one with its primary key, if there is one."""
    key = and_(*(column == row[column.name] for column in table.primary_key))
    db.execute(delete(table).where(key))
    db.execute(insert(table).values(**row))


def schema_version(engine: Engine) -> str | None:
    """The schema's version; None while there is no schema."""
    try:
        with engine.connect() as connection:
            return connection.scalar(text("SELECT version_num FROM alembic_version"))
    except (OperationalError, ProgrammingError) as error:
        # Anything else, as a full disk or a server that is away, must not end in a migration.
        missing = getattr(error.orig, "sqlstate", None) == UNDEFINED_TABLE
        if missing or "no such table" in str(error.orig):
            return None
        raise


def migrate(engine: Engine) -> None:
    """Bring the schema up to date, in one transaction, while every other opener waits.

    A ConflictError when no migration leads from the schema's version to HEAD.
    """
    with _migration_lock(engine):
        if engine.dialect.name == "sqlite":
            with engine.connect() as connection:
                raw = connection.connection.dbapi_connection
                assert raw is not None
                connection.rollback()
                raw.execute("PRAGMA journal_mode = WAL")
        version = schema_version(engine)
        if version != HEAD:
            with writing(engine) as connection:
                _upgrade(connection, version)


@contextmanager
def _migration_lock(engine: Engine) -> Generator[None, None, None]:
    if engine.dialect.name == "sqlite":
        with _file_lock(Path(f"{engine.url.database}.lock")):
            yield
        return
    with engine.connect() as connection:
        connection.exec_driver_sql(f"SELECT pg_advisory_lock({MIGRATION_LOCK})")
        try:
            yield
        finally:
            connection.exec_driver_sql(f"SELECT pg_advisory_unlock({MIGRATION_LOCK})")


@contextmanager
def _file_lock(path: Path) -> Generator[IO[str], None, None]:
    import fcntl

    make_private_file(path)
    with path.open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield handle


def _upgrade(connection: Connection, version: str | None) -> None:
    # Alembic takes longer to import than an up-to-date store takes to open.
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    try:
        command.upgrade(config, "head")
    except CommandError as error:
        raise ConflictError(
            "the ops store was made by another version of Headgate",
            why=f"its schema is version {version}; this Headgate can use version {HEAD} only",
            fix="use the Headgate that made it, or point OPS_STORE_URL at a new database",
        ) from error
