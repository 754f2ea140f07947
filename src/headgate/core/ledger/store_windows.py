"""Windows of metrics: which a batch counted into, and what was last said of each.

They are touched in the transaction that settles the batch, so none is missed and a replay touches
none twice. A closing has a number of its own, upwards over all jobs: a sink that has sent all up to
a number knows what is left without looking at every window.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import (
    Connection,
    RowMapping,
    Select,
    Table,
    case,
    func,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite

from headgate.core.ledger.store_model import Closing, Judged, Window
from headgate.core.ledger.tables import intents, ledger, sinks, windows

KEPT_RECORDS = 10_000
MOST_RECORDS = 1_000_000
_PENDING = windows.c.touched > windows.c.seen


def upsert(db: Connection, table: Table) -> sqlite.Insert | postgresql.Insert:
    """An insert that both databases let go on where the row is there already."""
    return sqlite.insert(table) if db.dialect.name == "sqlite" else postgresql.insert(table)


def touch(db: Connection, job: str, batch: int, judged: Judged) -> None:
    """Note the windows of a batch that is being settled."""
    if judged.anew:
        db.execute(update(windows).where(windows.c.job == job).values(touched=batch))
    new = upsert(db, windows)
    newest = case(
        (windows.c.newest.is_(None), new.excluded.newest),
        (new.excluded.newest > windows.c.newest, new.excluded.newest),
        else_=windows.c.newest,
    )
    statement = new.on_conflict_do_update(
        index_elements=["job", "window_start"], set_={"touched": batch, "newest": newest}
    )
    rows = [
        {"job": job, "touched": batch, "seen": 0, "sequence": 0}
        | {"window_start": start, "newest": newest}
        for start, newest in judged.windows
    ]
    if rows:
        db.execute(statement, rows)


def pending(db: Connection, job: str, before: datetime | None, limit: int) -> tuple[Window, ...]:
    """Windows with something new in them, the oldest first; only those that begin before a time."""
    query = select(windows).where(windows.c.job == job, _PENDING)
    if before is not None:
        query = query.where(windows.c.window_start < before)
    return _found(db, query.order_by(windows.c.window_start).limit(limit))


def greatest_event_time(db: Connection, job: str, until: datetime) -> datetime | None:
    """How far event time has come by a time: rows from the future say nothing until it is there."""
    mine = (windows.c.job == job) & (windows.c.newest <= until)
    return db.scalar(select(func.max(windows.c.newest)).where(mine))


def last_closed(db: Connection, job: str, until: datetime) -> datetime | None:
    """The start of the last window that was closed, of those that begin by a time."""
    closed = (windows.c.sequence > 0) & (windows.c.window_start <= until)
    found = select(windows.c.window_start).where(windows.c.job == job, closed)
    return db.scalar(found.order_by(windows.c.window_start.desc()).limit(1))


def jobs_with_pending(db: Connection) -> tuple[str, ...]:
    """The jobs with a window that has something new in it."""
    found = select(windows.c.job).where(_PENDING).distinct().order_by(windows.c.job)
    return tuple(db.scalars(found))


def last_record_at(db: Connection, job: str) -> datetime | None:
    """When the job's last batch was committed; None while one is under way."""
    begun = select(intents.c.id).where(intents.c.job == job, intents.c.state == "open")
    if db.scalar(begun.limit(1)) is not None:
        return None
    return db.scalar(select(func.max(ledger.c.committed_at)).where(ledger.c.job == job))


def close(db: Connection, closings: Iterable[Closing], now: datetime) -> int:
    """Keep what was found of windows; how many have a new record."""
    number = db.scalar(select(func.max(windows.c.closing))) or 0
    closed = 0
    for found in closings:
        values: dict[str, object] = {"seen": found.window.touched}
        if found.record is not None:
            values |= {"record": dict(found.record), "digest": found.digest, "closed_at": now}
            values |= {"sequence": found.window.sequence + 1, "closing": number + closed + 1}
        same = _same(found.window) & (windows.c.sequence == found.window.sequence)
        changed = db.execute(update(windows).where(same).values(values)).rowcount
        closed += int(found.record is not None and changed > 0)
    return closed


def forget(db: Connection, job: str) -> None:
    """Let go of the text of old records: numbers and digests stay, so ids never come again.

    What a sink has still to send is kept, unless it is away for a million windows.
    """
    closed = select(windows.c.closing).where(windows.c.job == job, windows.c.record.is_not(None))
    oldest = db.scalar(closed.order_by(windows.c.closing.desc()).offset(KEPT_RECORDS).limit(1))
    if oldest is None:
        return
    last = db.scalar(select(func.max(windows.c.closing))) or 0
    unsent = db.scalar(select(func.min(sinks.c.closing)))
    until = max(last - MOST_RECORDS, min(oldest, oldest if unsent is None else unsent))
    old = (windows.c.job == job, windows.c.closing <= until, windows.c.record.is_not(None))
    db.execute(update(windows).where(*old).values(record=None))


def find(db: Connection, job: str | None, limit: int) -> tuple[Window, ...]:
    """The newest windows, in the order of their times."""
    query = select(windows) if job is None else select(windows).where(windows.c.job == job)
    newest = _found(db, query.order_by(windows.c.window_start.desc()).limit(limit))
    return tuple(reversed(newest))


def counts(db: Connection) -> dict[str, tuple[int, int, int]]:
    """Per job: windows with something new in them, closed ones, and those closed again."""
    open_ = func.sum(case((_PENDING, 1), else_=0))
    closed = func.sum(case((windows.c.sequence > 0, 1), else_=0))
    again = func.sum(case((windows.c.sequence > 1, windows.c.sequence - 1), else_=0))
    query = select(windows.c.job, open_, closed, again).group_by(windows.c.job)
    return {job: (int(o), int(c), int(a)) for job, o, c, a in db.execute(query)}


def window(row: RowMapping) -> Window:
    return Window(**{column.name: row[column] for column in windows.c})


def _found(db: Connection, query: Select[tuple[object, ...]]) -> tuple[Window, ...]:
    return tuple(window(row) for row in db.execute(query).mappings())


def _same(found: Window):
    return (windows.c.job == found.job) & (windows.c.window_start == found.window_start)
