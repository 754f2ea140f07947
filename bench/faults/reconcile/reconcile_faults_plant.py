"""Pairs that are planted for as long as a play lasts, and what must come of each, by its role alone."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import orjson

from headgate.config.settings import Settings
from headgate.core.kafka.topic_writer import TopicWriter
from headgate.demo.reconcile.sending import prepare
from headgate.errors import HeadgateError, UnavailableError
from headgate.reconcile.cassandra.session import Cassandra, open_session

MATCH, MISMATCH, ZOMBIE = "MATCH", "MISMATCH", "ZOMBIE"
MISSING_CLOUD, MISSING_ONPREM, DELETE_EVENT = "MISSING_CLOUD", "MISSING_ONPREM", "DELETE_EVENT"
# The role of a key by its number: the last digits of so many; every other key is sound.
ROLES = (MISMATCH, MISSING_CLOUD, MISSING_ONPREM, DELETE_EVENT, ZOMBIE)
OF = 20
RETRY_SECONDS = 0.5
DELIVER_SECONDS = 180.0
COLUMNS = ("pk", "col1", "col2", "col3", "col4", "last_updated")
HashOf = Callable[[dict[str, object]], str]


@dataclass(frozen=True)
class Pair:
    """One key: what it is meant to become, and when it was written."""

    number: int
    at: datetime
    polled: bool

    @property
    def pk(self) -> str:
        return f"k{self.number:07d}"

    @property
    def role(self) -> str:
        last = self.number % OF
        role = ROLES[last] if last < len(ROLES) else MATCH
        # Of a row that on-prem never spoke of only Connect can tell.
        return MATCH if role == MISSING_ONPREM and not self.polled else role

    def values(self) -> dict[str, object]:
        """The row as it is on-prem."""
        return {
            "col1": f"row {self.number} | é",
            "col2": Decimal(self.number) / 100,
            "col3": datetime(2024, 1, 1, tzinfo=UTC) + timedelta(seconds=self.number),
            "col4": self.number / 8,
        }

    def row(self) -> tuple[object, ...] | None:
        """What the cloud holds of it; None where it holds nothing."""
        if self.role in (MISSING_CLOUD, DELETE_EVENT):
            return None
        values = self.values()
        if self.role == MISMATCH:
            values["col1"] = f"another {self.number}"
        # The row that on-prem has deleted is older than the delete.
        version = self.at - timedelta(seconds=1) if self.role == ZOMBIE else self.at
        return (self.pk, *values.values(), version)

    def message(self, hash_of: HashOf) -> bytes | None:
        """What on-prem says of it; None where it says nothing."""
        if self.role == MISSING_ONPREM:
            return None
        action = "DELETE" if self.role in (DELETE_EVENT, ZOMBIE) else "UPSERT"
        return orjson.dumps(
            {
                "event_id": f"e-{self.number}",
                "action": action,
                "hash_onprem": hash_of(self.values()),
                "hash_version": 2,
                "partitionColumns": [{"type": "PK", "value": self.pk}],
                "event_ts": self.at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            }
        )


@dataclass
class Planter(threading.Thread):
    """Writes rows to the cloud and events to on-prem's topic, a piece at a time, until told to end.

    One piece goes ahead, so that an engine that has just started is not met by a backlog.
    Nothing is given up: a piece that Cassandra or the broker did not take is sent again.
    """

    home: Settings
    table: str
    topic: str
    hash_of: HashOf
    keys: int
    every: float
    polled: bool
    planted: list[Pair] = field(default_factory=list[Pair])
    sent: int = 0
    at_full_pace: bool = False
    error: Exception | None = None
    _stocked: list[Sequence[Pair]] = field(default_factory=list[Sequence[Pair]])
    _wanted: int = 0
    _ending: bool = False
    _session: Cassandra | None = None
    _cloud: ExitStack = field(default_factory=ExitStack)

    def __post_init__(self) -> None:
        super().__init__(name="pairs", daemon=True)

    __hash__ = threading.Thread.__hash__

    def stock(self, pieces: int) -> None:
        """Have the rows of the next pieces in the cloud before it goes away."""
        self._wanted = pieces
        while self._wanted and self.is_alive():
            time.sleep(0.05)

    def finish(self, limit: float) -> None:
        self._ending = True
        self.join(limit)

    def run(self) -> None:
        try:
            writer = TopicWriter(self.home.need("bootstrap_servers"), DELIVER_SECONDS)
            while not self._ending or self._stocked:
                begun = time.monotonic()
                if not self.planted or self.at_full_pace:
                    self._tell(writer, self._next())
                time.sleep(max(0.0, self.every - (time.monotonic() - begun)))
        except Exception as error:
            self.error = error
        finally:
            self._cloud.close()

    def _next(self) -> Sequence[Pair]:
        if self._wanted:
            self._stocked += [self._written() for _ in range(self._wanted)]
            self._wanted = 0
        return self._stocked.pop(0) if self._stocked else self._written()

    def _written(self) -> Sequence[Pair]:
        """A new piece whose rows the cloud has taken.

        Each try has its own time, as a service's has that writes again: polling finds no row whose
        time is long past when it is written.
        """
        while True:
            piece = self._drawn()
            rows = [row for pair in piece if (row := pair.row()) is not None]
            if self._took(rows):
                self.planted += piece
                return piece
            time.sleep(RETRY_SECONDS)

    def _drawn(self) -> Sequence[Pair]:
        now = datetime.now(UTC)
        at = now.replace(microsecond=now.microsecond // 1000 * 1000)
        begin = len(self.planted)
        return [Pair(begin + n, at, self.polled) for n in range(self.keys)]

    def _took(self, rows: Sequence[tuple[object, ...]]) -> bool:
        marks = ", ".join("?" * len(COLUMNS))
        cql = f"INSERT INTO {self.table} ({', '.join(COLUMNS)}) VALUES ({marks})"
        try:
            self._session = self._session or self._cloud.enter_context(open_session(self.home))
            self._session.write_many(cql, rows)
        except HeadgateError as error:
            if not error.retryable:
                raise
            self._session = None
            self._cloud.close()
            return False
        return True

    def _tell(self, writer: TopicWriter, piece: Sequence[Pair]) -> None:
        told = [(pair.pk.encode(), pair.message(self.hash_of)) for pair in piece]
        said = [(key, value) for key, value in told if value is not None]
        writer.send(self.topic, [value for _, value in said], [key for key, _ in said])
        writer.flush()
        self.sent += len(said)


def make_table(home: Settings, table: str, limit: float = 60.0) -> None:
    """The empty table; a node that has just started may not take it at once."""
    end = time.monotonic() + limit
    while True:
        try:
            with open_session(home) as cassandra:
                prepare(cassandra, table)
                return
        except UnavailableError:
            if time.monotonic() > end:
                raise
            time.sleep(RETRY_SECONDS)
