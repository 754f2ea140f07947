"""How far each sink of metrics has sent closed windows and batches, and what keeps it from going on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import Connection, and_, func, insert, select, update

from headgate.core.ledger.store_model import SinkState, Unsent
from headgate.core.ledger.store_windows import KEPT_RECORDS, upsert, window
from headgate.core.ledger.tables import ledger, sinks, window_sinks, windows


def register(db: Connection, name: str, now: datetime) -> SinkState:
    """The sink's state; one that is new begins with what closes and is settled from now on."""
    known = find(db, name)
    if known is None:
        last = db.scalar(select(func.max(windows.c.closing))) or 0
        begun = {"closing": last, "ledger": _last_row(db), "since": now, "failures": 0}
        db.execute(insert(sinks).values(name=name, **begun))
        known = find(db, name)
    assert known is not None
    return known


def find(db: Connection, name: str) -> SinkState | None:
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
    known = find(db, state.name)
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
