"""The dedupe helper: which deliveries had their effect, in one SQLite file with the effects.

A delivery is noted in the transaction that keeps its effects. So a consumer that is killed anywhere
finds either both or neither, and the record that Kafka gives it again changes nothing.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from headgate.errors import UnavailableError
from headgate.filters.consumers.consumers_event import CREATIONS, ServiceEvent
from headgate.filters.consumers.delivery import Delivery

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
