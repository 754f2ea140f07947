"""Events into PostgreSQL: the whole event, its header and its entities in one transaction."""

from __future__ import annotations

import queue
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Self

import psycopg
from psycopg import sql

from headgate.errors import OperationError
from headgate.filters.events.events_database import Connection, Place, away, connect, migrate
from headgate.filters.events.events_model import EntityType, EventHeader
from headgate.filters.events.reading import Read

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
