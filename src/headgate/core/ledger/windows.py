"""Metrics windows: which a batch has touched, the last record of each, and how far each sink has sent them.

Windows are touched in the transaction that settles the batch, so none is missed and a replay touches none
twice. Closings are numbered upwards over all jobs: a sink that has sent all up to a number needs to read
only what is above it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import (
    Connection,
    RowMapping,
    Select,
    Table,
    and_,
    case,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite

from headgate.core.ledger import counts as rule_counts
from headgate.core.ledger.model import Closing, Judged, LedgerRow, SinkState, Unsent, Window
from headgate.core.ledger.tables import intents, ledger, sinks, window_sinks, windows

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


@dataclass(frozen=True)
class JudgedRows:
    """The rule counts of a batch and the windows it touched, as extra rows of its ledger row."""

    judged: Judged

    def write(self, db: Connection, row: LedgerRow) -> None:
        if row.id is not None:
            rule_counts.note(db, row.job, row.id, self.judged)
            touch(db, self.judged.windows_of or row.job, row.id, self.judged)


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


def register(db: Connection, name: str, now: datetime) -> SinkState:
    """The sink's state; one that is new begins with what closes and is settled from now on."""
    known = find_sink(db, name)
    if known is None:
        last = db.scalar(select(func.max(windows.c.closing))) or 0
        begun = {"closing": last, "ledger": _last_row(db), "since": now, "failures": 0}
        db.execute(insert(sinks).values(name=name, **begun))
        known = find_sink(db, name)
    assert known is not None
    return known


def find_sink(db: Connection, name: str) -> SinkState | None:
    row = db.execute(select(sinks).where(sinks.c.name == name)).mappings().one_or_none()
    return SinkState(**row) if row else None


def every(db: Connection) -> tuple[SinkState, ...]:
    found = db.execute(select(sinks).order_by(sinks.c.name)).mappings()
    return tuple(SinkState(**row) for row in found)


def waiting(db: Connection, state: SinkState) -> int:
    """How many closed windows the sink has still to send."""
    query = select(func.count()).select_from(windows).where(windows.c.closing > state.closing)
    return int(db.scalar(query) or 0)


def unsent(db: Connection, state: SinkState, limit: int) -> tuple[Unsent, ...]:
    """The next windows to send, in the order they were closed."""
    mine = and_(
        window_sinks.c.sink == state.name,
        window_sinks.c.job == windows.c.job,
        window_sinks.c.window_start == windows.c.window_start,
    )
    query = select(windows, window_sinks.c.metrics).outerjoin(window_sinks, mine)
    query = query.where(windows.c.closing > state.closing).order_by(windows.c.closing).limit(limit)
    rows = db.execute(query).mappings()
    return tuple(Unsent(window(row), row[window_sinks.c.metrics] or {}) for row in rows)


def claim(
    db: Connection,
    state: SinkState,
    found: Sequence[tuple[Unsent, Mapping[str, int]]],
    now: datetime,
) -> bool:
    """Mark the windows as sent before they are; False when another process was quicker."""
    known = find_sink(db, state.name)
    if known is None or known.closing != state.closing:
        return False
    sent(db, state.name, found, now)
    return True


def rewind(db: Connection, name: str, *, batches: bool) -> None:
    """Begin again with the first window that is kept, and with as many batches."""
    again = {"closing": 0}
    if batches:
        again["ledger"] = max(0, _last_row(db) - KEPT_RECORDS)
    db.execute(update(sinks).where(sinks.c.name == name).values(**again))


def claim_batches(
    db: Connection, state: SinkState, until: int, now: datetime, *, sent: bool
) -> bool:
    """Go on behind the batches up to a row, `sent` or with nothing to send; False when another
    process was quicker."""
    mine = (sinks.c.name == state.name) & (sinks.c.ledger == state.ledger)
    done = {"sent_at": now, "failures": 0, "trouble": None} if sent else {}
    changed = db.execute(update(sinks).where(mine).values(ledger=until, **done))
    return changed.rowcount > 0


def _last_row(db: Connection) -> int:
    return db.scalar(select(func.max(ledger.c.id))) or 0


def sent(
    db: Connection, name: str, found: Sequence[tuple[Unsent, Mapping[str, int]]], now: datetime
) -> None:
    """These windows are sent, with these metrics; nothing keeps the sink from going on."""
    new = upsert(db, window_sinks)
    statement = new.on_conflict_do_update(
        index_elements=["sink", "job", "window_start"],
        set_={c: new.excluded[c] for c in ("sequence", "metrics", "sent_at")},
    )
    rows = [
        {"sink": name, "job": one.window.job, "window_start": one.window.window_start}
        | {"sequence": one.window.sequence, "metrics": dict(metrics), "sent_at": now}
        for one, metrics in found
    ]
    db.execute(statement, rows)
    last = max(one.window.closing or 0 for one, _ in found)
    further = (sinks.c.name == name, sinks.c.closing < last)
    db.execute(update(sinks).where(*further).values(closing=last))
    done = {"sent_at": now, "failures": 0, "trouble": None}
    db.execute(update(sinks).where(sinks.c.name == name).values(**done))


def failed(db: Connection, name: str, words: str) -> None:
    again = {"failures": sinks.c.failures + 1, "trouble": words}
    db.execute(update(sinks).where(sinks.c.name == name).values(**again))


def sent_of(db: Connection, job: str, starts: Sequence[datetime]) -> dict[datetime, dict[str, int]]:
    """Per window of a job: the sequence that each sink has sent."""
    query = select(window_sinks.c.window_start, window_sinks.c.sink, window_sinks.c.sequence)
    mine = (window_sinks.c.job == job, window_sinks.c.window_start.in_(starts))
    found: dict[datetime, dict[str, int]] = {}
    for start, sink, sequence in db.execute(query.where(*mine)):
        found.setdefault(start, {})[sink] = sequence
    return found
