"""The events' database: tables and migrations, the writer, and the Debezium connector that makes a topic of them.

An event is written whole in one transaction: its header, its entities; sent twice, it is written once.
"""

from __future__ import annotations

import queue
import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import LiteralString, Self, cast

import psycopg
from psycopg import sql

from headgate.config.settings import Settings
from headgate.core.kafka.connect_rest import TRANSFORMS, Connector, transforms
from headgate.errors import OperationError, UnavailableError
from headgate.filters.events.model import EntityType, EventHeader, Read

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


KEPT = 8
TABLES: Mapping[EntityType, str] = {
    "Car": "cars",
    "Loan": "loans",
    "LoanPayment": "loan_payments",
    "ServiceRecord": "service_records",
    "PartUsed": "parts_used",
    "ServiceDetails": "service_details",
}
EVENTS = """
INSERT INTO business_events (id, event_name, event_type, created_date, saved_date, event_data)
SELECT * FROM unnest(
    %s::text[], %s::text[], %s::text[], %s::timestamptz[], %s::timestamptz[], %s::jsonb[])
ON CONFLICT (id) DO NOTHING
RETURNING id"""
HEADERS = """
INSERT INTO event_headers (id, event_name, event_type, created_date, saved_date, header_data)
SELECT * FROM unnest(
    %s::text[], %s::text[], %s::text[], %s::timestamptz[], %s::timestamptz[], %s::jsonb[])"""
ENTITIES = """
INSERT INTO {table} AS kept (entity_id, event_id, created_at, updated_at, entity_data)
SELECT * FROM unnest(
    %s::text[], %s::text[], %s::timestamptz[], %s::timestamptz[], %s::jsonb[])
ON CONFLICT (entity_id) DO UPDATE SET
    event_id = excluded.event_id,
    updated_at = excluded.updated_at,
    entity_data = excluded.entity_data
WHERE kept.updated_at <= excluded.updated_at"""
Row = tuple[object, ...]
EntityRow = tuple[str, str, datetime, datetime, str]


class EventWriter:
    """Writes events; any number of threads may use it at once."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._idle: queue.LifoQueue[Connection] = queue.LifoQueue(KEPT)
        self._migrated = False

    def write(self, events: Sequence[Read]) -> frozenset[str]:
        """The ids that were written now, all in one transaction; others were there before.

        After an UnavailableError they may be written or not: write them again.
        """
        if not events:
            return frozenset()
        first = {read.event.id: read for read in reversed(events)}
        ordered = [first[id] for id in sorted(first)]  # so that no two writers wait for each other
        try:
            with self._connection() as connection:
                return _write(connection, ordered)
        except psycopg.OperationalError as error:
            raise away(self._place, error) from None
        except psycopg.errors.UndefinedTable as error:
            self._migrated = False  # somebody began with an empty database
            raise away(self._place, error) from None
        except psycopg.Error as error:
            raise OperationError("PostgreSQL refused the events", why=str(error).strip()) from None

    def check(self) -> None:
        """An UnavailableError when PostgreSQL does not answer."""
        with self._connection():
            pass

    def close(self) -> None:
        with suppress(queue.Empty):
            while True:
                self._idle.get_nowait().close()

    @contextmanager
    def _connection(self) -> Generator[Connection]:
        """A connection that answers, in a transaction that is committed at the end."""
        self._migrate()
        connection = self._living() or connect(self._place)
        try:
            with connection.transaction():
                yield connection
        except BaseException:
            connection.close()
            raise
        try:
            self._idle.put_nowait(connection)
        except queue.Full:
            connection.close()

    def _migrate(self) -> None:
        if not self._migrated:
            migrate(self._place)
            self._migrated = True

    def _living(self) -> Connection | None:
        """One that was used before, unless the server has left it since."""
        try:
            connection = self._idle.get_nowait()
        except queue.Empty:
            return None
        try:
            with connection.transaction():
                connection.execute("SELECT 1")
        except psycopg.Error:
            connection.close()
            return None
        return connection

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _write(connection: Connection, events: Sequence[Read]) -> frozenset[str]:
    whole = _columns([(*_head(read.event.event_header), read.text) for read in events])
    found = connection.execute(EVENTS, whole).fetchall()
    written = frozenset(str(row[0]) for row in found)
    fresh = [read for read in events if read.event.id in written]
    if fresh:
        rows = [(*_head(read.event.event_header), read.header_data) for read in fresh]
        connection.execute(HEADERS, _columns(rows))
        for kind, table in TABLES.items():
            _write_entities(connection, table, _newest(fresh, kind))
    return written


def _head(header: EventHeader) -> Row:
    times = (header.created_date, header.saved_date)
    return (header.uuid, header.event_name, header.event_type, *times)


def _newest(events: Iterable[Read], kind: EntityType) -> list[EntityRow]:
    """The rows of one type of entity; of two states of one entity the newer."""
    rows: dict[str, EntityRow] = {}
    for read in events:
        for entity, text in zip(read.event.entities, read.entities, strict=True):
            head = entity.entity_header
            if head.entity_type == kind:
                row = (head.entity_id, read.event.id, head.created_at, head.updated_at, text)
                before = rows.get(head.entity_id)
                if before is None or before[3] <= row[3]:
                    rows[head.entity_id] = row
    return [rows[id] for id in sorted(rows)]


def _write_entities(connection: Connection, table: str, rows: Sequence[Row]) -> None:
    if rows:
        connection.execute(sql.SQL(ENTITIES).format(table=sql.Identifier(table)), _columns(rows))


def _columns(rows: Sequence[Row]) -> list[list[object]]:
    """Rows as PostgreSQL unnests them: one list for each column."""
    return [list(column) for column in zip(*rows, strict=True)]


NAME = "events-source"
SOURCE = "io.debezium.connector.postgresql.PostgresConnector"
UNWRAP = "io.debezium.transforms.ExtractNewRecordState"
STRINGS = "org.apache.kafka.connect.storage.StringConverter"
JSON = "org.apache.kafka.connect.json.JsonConverter"
PREFIX = "events"
TOPIC_PARTITIONS, TOPIC_DAYS = 3, 7
TOPIC_FIELD = "transforms.route.replacement"
# How soon a task tries again after PostgreSQL went away, and for how long: for ever.
RETRY_MS = 1_000


def events_connector(place: Place, topic: str, password: str) -> Connector:
    """The connector as Connect takes it; `password` is a reference, never the word itself."""
    login = {"database.user": place.user, "database.password": password}
    config = {
        "connector.class": SOURCE,
        "tasks.max": "1",
        "database.hostname": place.host,
        "database.port": str(place.port),
        **{name: value for name, value in login.items() if value},
        "database.dbname": place.database,
        "plugin.name": "pgoutput",
        "publication.name": PUBLICATION,
        # A migration makes it, so that the connector's user needs to own no table.
        "publication.autocreate.mode": "disabled",
        "slot.name": PUBLICATION,
        "table.include.list": f"public.{TABLE}",
        "snapshot.mode": "initial",
        "topic.prefix": PREFIX,
        "poll.interval.ms": "100",
        "errors.max.retries": "-1",
        "retriable.restart.connector.wait.ms": str(RETRY_MS),
        "key.converter": STRINGS,
        "value.converter": JSON,
        "value.converter.schemas.enable": "false",
        **_chain(topic),
        "topic.creation.default.partitions": str(TOPIC_PARTITIONS),
        "topic.creation.default.replication.factor": "-1",
    }
    return Connector(NAME, config)


def _chain(topic: str) -> dict[str, str]:
    return transforms(
        {
            "unwrap": {
                "type": UNWRAP,
                "add.fields": "op,table,ts_ms",
                "add.fields.prefix": "__",
                # A deleted row comes as its last state with op d, and without a tombstone.
                "delete.tombstone.handling.mode": "rewrite",
            },
            # `__op` says it already.
            "shape": {"type": f"{TRANSFORMS}.ReplaceField$Value", "exclude": "__deleted"},
            "key": {"type": f"{TRANSFORMS}.ExtractField$Key", "field": "id"},
            "route": {
                "type": f"{TRANSFORMS}.RegexRouter",
                "regex": f"{PREFIX}\\.public\\.{TABLE}",
                "replacement": topic,
            },
        }
    )
