"""Batches: the intent written before the first output, and the ledger row written when the batch is settled.

    open ──settle──▶ settled ──full rebuild──▶ superseded
     ├──amend──▶ amended (the same offsets go on as a new open intent, under other revisions)
     └──withdraw──▶ withdrawn

A replay gets the stored intent back. `settle` refuses a row whose outcomes do not add up to the records read,
or whose offsets overlap with another row of the job; settling the same range again changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, RowMapping, Select, func, insert, select, update

from headgate.core.ledger.model import Intent, LedgerExtra, LedgerRow
from headgate.core.ledger.offset_ranges import pieces as pieces_of
from headgate.core.ledger.ranges import OffsetRange, Range, is_rebuild, parse_range, stored_range
from headgate.core.ledger.tables import intents, ledger, pieces
from headgate.errors import BatchRefusedError

OPEN, SETTLED, AMENDED, SUPERSEDED = "open", "settled", "amended", "superseded"
WITHDRAWN = "withdrawn"


def begin(db: Connection, intent: Intent) -> Intent:
    return stored(db, intent) or add(db, intent, OPEN)


def stored(db: Connection, intent: Intent) -> Intent | None:
    """The intent already written for this start. A full rebuild may be done again once settled."""
    states = (OPEN,) if is_rebuild(intent.range) else (OPEN, SETTLED)
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
    result = db.execute(insert(intents).values(**values, **stored_range(intent.range)))
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


def from_row(row: Row[Any]) -> Intent:
    return Intent(
        id=row.id,
        job=row.job,
        run=row.run,
        range=parse_range(row.source, row.source_id, row.start, row.end),
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


def settle(
    db: Connection, intent: Intent, row: LedgerRow, extras: Sequence[LedgerExtra] = ()
) -> LedgerRow:
    """Close the intent with its outcome and write the extra rows; the same range again changes nothing."""
    known = _of_intent(db, intent)
    if known is not None:
        return known
    settled = _same_range(db, row) if isinstance(row.range, OffsetRange) else None
    if settled is not None:
        # Another run was quicker: the records have their outcome, under the revision it used.
        close(db, intent, SETTLED)
        return settled
    refuse_unless_sound(intent, row)
    _refuse_overlap(db, row)
    return _record(db, intent, row, extras)


def refuse_unless_sound(intent: Intent, row: LedgerRow) -> None:
    """Outcomes are disjoint and complete, and the row speaks of the batch that was announced."""
    if (row.job, row.range) != (intent.job, intent.range):
        raise BatchRefusedError(
            f"the outcome of {row.job} is not of the batch its intent announced",
            why=f"announced {_words(intent.range)}, settled {_words(row.range)}",
        )
    total = sum(row.outcomes.values())
    if total != row.read or min(row.outcomes.values(), default=0) < 0:
        raise BatchRefusedError(
            f"the outcomes of {row.job} do not add up",
            why=f"{row.read} records read, {total} with an outcome: {dict(row.outcomes)}",
        )
    if isinstance(row.range, OffsetRange) and row.read + row.gaps != row.span:
        raise BatchRefusedError(
            f"the offsets of {row.job} do not add up",
            why=f"{row.read} records read and {row.gaps} gaps in a span of {row.span}",
        )


def find(db: Connection, job: str | None = None) -> tuple[LedgerRow, ...]:
    """Ledger rows in the order they were committed."""
    query = select(ledger).order_by(ledger.c.committed_at, ledger.c.id)
    if job is not None:
        query = query.where(ledger.c.job == job)
    return tuple(_row(row) for row in db.execute(query).mappings())


def newest(db: Connection, job: str, limit: int) -> tuple[LedgerRow, ...]:
    """The last rows of a job, in the order they were committed."""
    query = select(ledger).where(ledger.c.job == job)
    query = query.order_by(ledger.c.committed_at.desc(), ledger.c.id.desc()).limit(limit)
    return tuple(_row(row) for row in reversed(db.execute(query).mappings().all()))


def after(db: Connection, row: int, limit: int) -> tuple[LedgerRow, ...]:
    """The rows of all jobs that were written after this one, in that order."""
    query = select(ledger).where(ledger.c.id > row).order_by(ledger.c.id).limit(limit)
    return tuple(_row(found) for found in db.execute(query).mappings())


def last_batch_time(db: Connection, job: str) -> datetime | None:
    """The time of the batch that was settled last."""
    query = select(ledger.c.batch_time).where(ledger.c.job == job)
    return db.scalar(query.order_by(ledger.c.id.desc()).limit(1))


def coverage(db: Connection, job: str) -> Mapping[str, int]:
    """Where the job's next batch must start: the end of each partition, or the snapshot."""
    found = settled_range(db, job)
    return found.end if found else {}


def settled_range(db: Connection, job: str) -> Range | None:
    """From the beginning to how far the job's newest source is settled."""
    mine = select(ledger).where(ledger.c.job == job)
    last = mine.order_by(ledger.c.committed_at.desc(), ledger.c.id.desc()).limit(1)
    newest = db.execute(last).mappings().first()
    if newest is None:
        return None
    range_ = _row(newest).range
    end = _ends(db, job, range_) if isinstance(range_, OffsetRange) else range_.end
    return parse_range(range_.source, range_.source_id, {}, end)


def rebuild(db: Connection, rows: Iterable[tuple[LedgerRow, Sequence[LedgerExtra]]]) -> int:
    """Add the rows that are missing, with an intent each, and say how many they were."""
    return sum(_restore(db, row, extras) for row, extras in rows)


def _restore(db: Connection, row: LedgerRow, extras: Sequence[LedgerExtra]) -> int:
    if _same_range(db, row) is not None:
        return 0
    intent = begin(
        db,
        Intent(None, row.job, row.run, row.range, row.revisions, row.batch_time, row.batch_id),
    )
    refuse_unless_sound(intent, row)
    _refuse_overlap(db, row)
    _record(db, intent, replace(row, rebuilt=True), extras)
    return 1


def _record(
    db: Connection, intent: Intent, row: LedgerRow, extras: Sequence[LedgerExtra]
) -> LedgerRow:
    if is_rebuild(row.range):
        supersede(db, row.job)
    close(db, intent, SETTLED)
    values: dict[str, Any] = {
        **vars(row),
        "intent": intent.id,
        "revisions": list(row.revisions),
        "outcomes": dict(row.outcomes),
        "snapshots": dict(row.snapshots),
        **stored_range(row.range),
    }
    del values["id"], values["range"]
    key = db.execute(insert(ledger).values(**values)).inserted_primary_key
    stored = replace(row, id=key[0] if key else None)
    _record_pieces(db, stored)
    for extra in extras:
        extra.write(db, stored)
    return stored


def _record_pieces(db: Connection, row: LedgerRow) -> None:
    shared = {"ledger": row.id, "job": row.job}
    shared |= {"source": row.range.source, "source_id": row.range.source_id}
    found = [{**shared, **vars(piece)} for piece in pieces_of(row.range)]
    if found:
        db.execute(insert(pieces), found)


def _refuse_overlap(db: Connection, row: LedgerRow) -> None:
    other = _overlapped(db, row)
    if other is not None:
        raise BatchRefusedError(
            f"a batch of {row.job} covers what is already settled",
            why=f"ledger row {other} overlaps {_words(row.range)}",
            fix=f"headgate job repair {row.job} starts it again from what its table has committed",
        )


def _overlapped(db: Connection, row: LedgerRow) -> int | None:
    if not isinstance(row.range, OffsetRange):
        return None if is_rebuild(row.range) else _same_start(db, row)
    for piece in pieces_of(row.range):
        query = select(pieces.c.ledger).where(
            pieces.c.job == row.job,
            pieces.c.source == row.range.source,
            pieces.c.source_id == row.range.source_id,
            pieces.c.partition == piece.partition,
            pieces.c.end > piece.start,
            pieces.c.start < piece.end,
        )
        other = db.scalar(query.limit(1))
        if other is not None:
            return other
    return None


def _same_start(db: Connection, row: LedgerRow) -> int | None:
    """Snapshots have no order: two rows from one snapshot overlap, unless a rebuild is between."""
    query = select(ledger.c.id).join(intents, intents.c.id == ledger.c.intent)
    same = (ledger.c.job == row.job, ledger.c.start == dict(row.range.start))
    source = (ledger.c.source == row.range.source, ledger.c.source_id == row.range.source_id)
    return db.scalar(query.where(*same, *source, intents.c.state == SETTLED).limit(1))


def _ends(db: Connection, job: str, range_: Range) -> Mapping[str, int]:
    query = select(pieces.c.partition, func.max(pieces.c.end)).where(
        pieces.c.job == job,
        pieces.c.source == range_.source,
        pieces.c.source_id == range_.source_id,
    )
    ends = {str(p): int(end) for p, end in db.execute(query.group_by(pieces.c.partition))}
    # A partition that has had no record yet has no piece, but its end was seen.
    return {**range_.end, **ends}


def _of_intent(db: Connection, intent: Intent) -> LedgerRow | None:
    row = db.execute(select(ledger).where(ledger.c.intent == intent.id)).mappings().one_or_none()
    return _row(row) if row else None


def _same_range(db: Connection, row: LedgerRow) -> LedgerRow | None:
    wanted = stored_range(row.range)
    query = select(ledger).where(
        ledger.c.job == row.job, *(ledger.c[name] == value for name, value in wanted.items())
    )
    if is_rebuild(row.range):
        query = query.where(ledger.c.batch_time == row.batch_time)
    found = db.execute(query.limit(1)).mappings().first()
    return _row(found) if found else None


def _row(row: RowMapping) -> LedgerRow:
    values: dict[str, Any] = {str(name): value for name, value in row.items()}
    range_ = parse_range(*(values.pop(name) for name in ("source", "source_id", "start", "end")))
    del values["intent"]
    values["revisions"] = tuple(values["revisions"])
    return LedgerRow(**values, range=range_)


def _words(range_: Range) -> str:
    return f"{range_.source} from {dict(range_.start)} to {dict(range_.end)}"
