"""Marks: named moments, each with a value; the newest replaces the one before."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, delete, insert, select

from headgate.core.ledger.store_model import Mark
from headgate.core.ledger.tables import marks


def write(db: Connection, name: str, value: str, now: datetime) -> None:
    db.execute(delete(marks).where(marks.c.name == name))
    db.execute(insert(marks).values(name=name, value=value, at=now))


def read(db: Connection, name: str) -> Mark | None:
    query = select(marks.c.value, marks.c.at).where(marks.c.name == name)
    row = db.execute(query).one_or_none()
    return Mark(row.value, row.at) if row else None


def find(db: Connection, prefix: str) -> dict[str, Mark]:
    """The marks whose names begin so, by name."""
    query = select(marks).where(marks.c.name.startswith(prefix, autoescape=True))
    return {row.name: Mark(row.value, row.at) for row in db.execute(query.order_by(marks.c.name))}
