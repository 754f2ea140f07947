"""What a dealer's systems do with an event: the interface, and three that keep it in SQLite.

A sink of your own is named in the configuration as `package.module:Class`. What it writes through
`database` is kept together with the note that the event was handled: its effect happens once. What
it does elsewhere can happen again after a kill: send `delivery.key` along, and let the other system
refuse what it knows.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Protocol, cast

from headgate.declarations.refusal import suggestion
from headgate.errors import SettingsError
from headgate.filters.consumers.consumers_event import ServiceEvent
from headgate.filters.consumers.delivery import Delivery, Record


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
