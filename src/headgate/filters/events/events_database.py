"""The events' database: where it is, its tables and their migrations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import LiteralString, cast

import psycopg

from headgate.config.settings import Settings
from headgate.errors import OperationError, UnavailableError

TABLE = "event_headers"
PUBLICATION = "headgate_events"
MIGRATIONS = Path(__file__).with_name("migrations")
NUMBERED = re.compile(r"^(\d{4})_\w+\.sql$")
CONNECT_SECONDS = 5
# One migrates at a time; the others wait. Any number that nobody else locks will do.
MIGRATING = 0x4845_4147
Connection = psycopg.Connection[tuple[object, ...]]
HISTORY = """
CREATE TABLE IF NOT EXISTS headgate_migrations (
    version    integer PRIMARY KEY,
    applied_at timestamptz NOT NULL DEFAULT now()
)"""


@dataclass(frozen=True)
class Place:
    """Where the database is, and who asks."""

    host: str
    port: int
    user: str
    database: str
    password: str | None = field(default=None, repr=False)

    @property
    def words(self) -> str:
        return f"{self.user}@{self.host}:{self.port}/{self.database}"


def place_of(settings: Settings) -> Place:
    """The database that the settings name."""
    if not settings.postgres_host:
        raise UnavailableError(
            "there is no PostgreSQL here",
            why="POSTGRES_HOST is not set",
            fix="headgate local up --with postgres, or set POSTGRES_HOST",
        )
    return Place(
        settings.postgres_host,
        settings.postgres_port,
        settings.postgres_user,
        settings.postgres_db,
        settings.postgres_password,
    )


def connect(place: Place) -> Connection:
    """A connection, or an error that says whether a retry helps."""
    try:
        return psycopg.connect(
            host=place.host,
            port=place.port,
            user=place.user,
            dbname=place.database,
            password=place.password,
            connect_timeout=CONNECT_SECONDS,
            application_name="headgate",
            options="-c timezone=UTC",
        )
    except psycopg.OperationalError as error:
        raise away(place, error) from None


def away(place: Place, error: psycopg.Error) -> UnavailableError:
    """PostgreSQL did not answer, or went away in the middle."""
    words = str(error).strip().partition("\n")[0]
    return UnavailableError(
        "PostgreSQL does not answer",
        why=f"{place.words}: {words}",
        fix="headgate local up --with postgres, or check POSTGRES_HOST and its user",
    )


def migrations() -> Iterator[tuple[int, str]]:
    """Number and text of each migration, in order."""
    for path in sorted(MIGRATIONS.iterdir()):
        if found := NUMBERED.match(path.name):
            yield int(found[1]), path.read_text("utf-8")


def migrate(place: Place) -> tuple[int, ...]:
    """Bring the tables up to date, all or nothing; which migrations were applied now."""
    try:
        with connect(place) as connection:
            connection.execute("SELECT pg_advisory_xact_lock(%s)", [MIGRATING])
            connection.execute(HISTORY)
            rows = connection.execute("SELECT version FROM headgate_migrations").fetchall()
            done = {row[0] for row in rows}
            return tuple(_apply(connection, n, text) for n, text in migrations() if n not in done)
    except psycopg.OperationalError as error:
        raise away(place, error) from None
    except psycopg.Error as error:
        raise OperationError(
            "the events' tables could not be made",
            why=f"{place.words}: {str(error).strip().partition(chr(10))[0]}",
            fix="let the owner of that database run `headgate feed events --tables-only`",
        ) from None


def _apply(connection: Connection, version: int, text: str) -> int:
    connection.execute(cast("LiteralString", text))  # a file of ours, not of a user
    connection.execute("INSERT INTO headgate_migrations (version) VALUES (%s)", [version])
    return version
