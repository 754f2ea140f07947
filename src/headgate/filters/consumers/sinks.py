"""Effects of a consumer and deduplication, kept together in one SQLite transaction, so that an effect happens once.

A sink of your own is named in the configuration as `package.module:Class`. What it writes through `database` is
kept together with the note that the event was handled. What it does elsewhere can happen again after a kill: send
`delivery.key` along, and let the other system refuse what it knows.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Protocol, Self, cast

from headgate.declarations.errors import suggestion
from headgate.errors import SettingsError, UnavailableError
from headgate.filters.consumers.event import CREATIONS, Delivery, Record, ServiceEvent

BUSY_SECONDS = 10.0
TABLES = """
CREATE TABLE IF NOT EXISTS seen (
    source_id TEXT NOT NULL,
    origin    TEXT NOT NULL,
    filter    TEXT NOT NULL,
    PRIMARY KEY (source_id, origin, filter)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS created (
    filter TEXT NOT NULL,
    id     TEXT NOT NULL,
    PRIMARY KEY (filter, id)
) WITHOUT ROWID;
"""


class Seen:
    """What had its effect already."""

    def __init__(self, file: Path) -> None:
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            # Transactions are opened and ended here, not by the driver.
            self.database = sqlite3.connect(file, timeout=BUSY_SECONDS, isolation_level=None)
            self.database.execute("PRAGMA journal_mode = WAL")
            self.database.execute("PRAGMA synchronous = FULL")
            self.database.executescript(TABLES)
        except (OSError, sqlite3.Error) as error:
            raise _unusable(f"{file}: {error}") from None

    @contextmanager
    def together(self) -> Generator[sqlite3.Connection]:
        """Everything inside is kept, or nothing."""
        try:
            self.database.execute("BEGIN IMMEDIATE")
            yield self.database
            self.database.execute("COMMIT")
        except sqlite3.Error as error:  # locked for too long, or the disk is full
            raise _unusable(str(error)) from None
        finally:
            if self.database.in_transaction:
                self.database.execute("ROLLBACK")

    def note(self, delivery: Delivery, event: ServiceEvent) -> bool:
        """Whether this is the first time; call it inside `together`, before the effect.

        The router may write a record twice: its origin tells. Debezium may send a change twice: two
        creations of one id are one.
        """
        given = (delivery.source_id, delivery.origin, delivery.filter)
        if not self._is_new("INSERT OR IGNORE INTO seen VALUES (?, ?, ?)", given):
            return False
        if event.op not in CREATIONS:
            return True
        known = (delivery.filter, event.id)
        return self._is_new("INSERT OR IGNORE INTO created VALUES (?, ?)", known)

    def _is_new(self, statement: str, values: tuple[str, ...]) -> bool:
        return self.database.execute(statement, values).rowcount == 1

    def close(self) -> None:
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _unusable(why: str) -> UnavailableError:
    return UnavailableError(
        "the consumer's state cannot be used",
        why=why,
        fix="free some space, or name another file with --state",
    )


class Sink(Protocol):
    """One system that is told of each event once."""

    def prepare(self, database: sqlite3.Connection) -> None:
        """Make what it needs; called at every start."""
        ...

    def apply(self, event: ServiceEvent, delivery: Delivery, database: sqlite3.Connection) -> None:
        """The effect. An error stops the consumer before the event counts as handled."""
        ...


class Crm:
    """When a car was last here, and how often."""

    def prepare(self, database: sqlite3.Connection) -> None:
        database.execute(
            "CREATE TABLE IF NOT EXISTS crm_visits"
            " (car_id TEXT PRIMARY KEY, visits INTEGER NOT NULL, last_service TEXT NOT NULL)"
        )

    def apply(self, event: ServiceEvent, delivery: Delivery, database: sqlite3.Connection) -> None:
        database.execute(
            "INSERT INTO crm_visits VALUES (?, 1, ?) ON CONFLICT (car_id) DO UPDATE SET"
            " visits = visits + 1, last_service = max(last_service, excluded.last_service)",
            (event.shown("carId"), event.shown("serviceDate")),
        )


class Inventory:
    """How many services of each type were done, so that parts can be ordered."""

    def prepare(self, database: sqlite3.Connection) -> None:
        database.execute(
            "CREATE TABLE IF NOT EXISTS inventory_services"
            " (service_type TEXT PRIMARY KEY, services INTEGER NOT NULL)"
        )

    def apply(self, event: ServiceEvent, delivery: Delivery, database: sqlite3.Connection) -> None:
        database.execute(
            "INSERT INTO inventory_services VALUES (?, 1)"
            " ON CONFLICT (service_type) DO UPDATE SET services = services + 1",
            (event.shown("serviceType"),),
        )


class Billing:
    """What was paid, as exact text; an event without an amount is kept for a person to look at."""

    def prepare(self, database: sqlite3.Connection) -> None:
        database.execute(
            "CREATE TABLE IF NOT EXISTS billing_entries"
            " (delivery TEXT PRIMARY KEY, event_id TEXT NOT NULL, amount TEXT)"
        )

    def apply(self, event: ServiceEvent, delivery: Delivery, database: sqlite3.Connection) -> None:
        amount = None if event.amount is None else f"{event.amount:.2f}"
        row = (delivery.key, event.id, amount)
        database.execute("INSERT INTO billing_entries VALUES (?, ?, ?)", row)


class Effects:
    """One row for each event that was handled; every consumer keeps it."""

    def prepare(self, database: sqlite3.Connection) -> None:
        database.execute(
            "CREATE TABLE IF NOT EXISTS effects (event_id TEXT NOT NULL, op TEXT NOT NULL,"
            " dealer TEXT NOT NULL, delivery TEXT PRIMARY KEY, place TEXT NOT NULL)"
        )

    def keep(
        self, event: ServiceEvent, delivery: Delivery, record: Record, database: sqlite3.Connection
    ) -> None:
        row = (event.id, event.op, event.dealer or "", delivery.key, record.place)
        database.execute("INSERT INTO effects VALUES (?, ?, ?, ?, ?)", row)


KNOWN: dict[str, type[Sink]] = {"crm": Crm, "inventory": Inventory, "billing": Billing}


def sinks_of(names: Sequence[str]) -> tuple[Sink, ...]:
    """The sinks that a configuration names."""
    return tuple(_sinks(names))


def _sinks(names: Sequence[str]) -> Iterator[Sink]:
    for name in names:
        if name in KNOWN:
            yield KNOWN[name]()
        elif ":" in name:
            yield _own(name)
        else:
            fix = suggestion(name, KNOWN, "sinks")
            raise SettingsError(f"there is no sink {name}", fix=f"{fix} Or write module:Class.")


def _own(name: str) -> Sink:
    module, _, kind = name.partition(":")
    try:
        return cast("Sink", getattr(import_module(module), kind)())
    except (ImportError, AttributeError, TypeError) as error:
        raise SettingsError(f"the sink {name} cannot be loaded", why=str(error)) from None
