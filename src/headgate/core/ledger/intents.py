"""Intents: what a batch will do, written first; a replay gets the stored one back."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, Row, Select, insert, select, update

from headgate.core.ledger.store_model import Intent, Range
from headgate.core.ledger.tables import intents
from headgate.errors import BatchRefusedError

OPEN, SETTLED, AMENDED, SUPERSEDED = "open", "settled", "amended", "superseded"
WITHDRAWN = "withdrawn"


def begin(db: Connection, intent: Intent) -> Intent:
    return stored(db, intent) or add(db, intent, OPEN)


def stored(db: Connection, intent: Intent) -> Intent | None:
    """The intent already written for this start. A full rebuild may be done again once settled."""
    states = (OPEN,) if intent.range.starts_anew else (OPEN, SETTLED)
    query = _at(intent.job, intent.range.start, states).where(
        intents.c.source == intent.range.source, intents.c.source_id == intent.range.source_id
    )
    return _first(db, query)


def at(db: Connection, job: str, start: Mapping[str, int]) -> Intent | None:
    return _first(db, _at(job, start, (OPEN, SETTLED)))


def open_of(db: Connection, job: str) -> tuple[Intent, ...]:
    query = select(intents).where(intents.c.job == job, intents.c.state == OPEN)
    return tuple(from_row(row) for row in db.execute(query.order_by(intents.c.id)))


def unsettled(db: Connection) -> tuple[Intent, ...]:
    query = select(intents).where(intents.c.state.in_((OPEN, WITHDRAWN)))
    return tuple(from_row(row) for row in db.execute(query.order_by(intents.c.id)))


def amend(db: Connection, intent: Intent, revisions: Sequence[str]) -> Intent:
    """The same offsets, judged by another set of revisions; the old intent stays on record."""
    if state(db, intent) != OPEN:
        raise BatchRefusedError(
            f"an intent of {intent.job} that is not open cannot be amended",
            why="the batch is settled, or was amended by someone else",
        )
    close(db, intent, AMENDED)
    return add(db, replace(intent, revisions=tuple(revisions), amends=intent.id), OPEN)


def withdraw(db: Connection, intent: Intent) -> None:
    """Give up a batch of which nothing is written; it stays on record."""
    if state(db, intent) == OPEN:
        close(db, intent, WITHDRAWN)


def add(db: Connection, intent: Intent, state: str) -> Intent:
    values = {**vars(intent), "state": state, "revisions": list(intent.revisions)}
    del values["id"], values["range"]
    result = db.execute(insert(intents).values(**values, **range_columns(intent.range)))
    key = result.inserted_primary_key
    return replace(intent, id=key[0] if key else None)


def state(db: Connection, intent: Intent) -> str | None:
    return db.scalar(select(intents.c.state).where(intents.c.id == intent.id))


def close(db: Connection, intent: Intent, state: str) -> None:
    db.execute(update(intents).where(intents.c.id == intent.id).values(state=state))


def supersede(db: Connection, job: str) -> None:
    """A full rebuild is settled: the starts before it may come again."""
    settled = (intents.c.job == job) & (intents.c.state == SETTLED)
    db.execute(update(intents).where(settled).values(state=SUPERSEDED))


def range_columns(range_: Range) -> dict[str, object]:
    return {**vars(range_), "start": dict(range_.start), "end": dict(range_.end)}


def from_row(row: Row[Any]) -> Intent:
    return Intent(
        id=row.id,
        job=row.job,
        run=row.run,
        range=Range(row.source, row.source_id, row.start, row.end),
        revisions=tuple(row.revisions),
        batch_time=row.batch_time,
        batch_id=row.batch_id,
        amends=row.amends,
    )


def _at(job: str, start: Mapping[str, int], states: Collection[str]) -> Select[Any]:
    query = select(intents).where(
        intents.c.job == job, intents.c.state.in_(states), intents.c.start == dict(start)
    )
    return query.order_by(intents.c.id.desc()).limit(1)


def _first(db: Connection, query: Select[Any]) -> Intent | None:
    row = db.execute(query).first()
    return from_row(row) if row else None
