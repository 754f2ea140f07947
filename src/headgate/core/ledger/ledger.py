"""The ledger: per job and batch what was read and what became of it. Only what adds up gets in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, func, insert, select

from headgate.core.ledger import intents as intent_rows
from headgate.core.ledger import rule_counts
from headgate.core.ledger import store_windows as windows
from headgate.core.ledger.coverage import pieces as pieces_of
from headgate.core.ledger.store_model import Intent, Judged, LedgerRow, Range
from headgate.core.ledger.tables import intents, ledger, pieces
from headgate.errors import BatchRefusedError
from headgate.filters.store import routed
from headgate.filters.store.routing_model import RoutedBatch


def settle(
    db: Connection,
    intent: Intent,
    row: LedgerRow,
    judged: Judged | None = None,
    batch: RoutedBatch | None = None,
) -> LedgerRow:
    """Close the intent with its outcome; the same range again changes nothing."""
    known = _of_intent(db, intent)
    if known is not None:
        return known
    settled = None if row.range.is_table else _same_range(db, row)
    if settled is not None:
        # Another run was quicker: the records have their outcome, under the revision it used.
        intent_rows.close(db, intent, intent_rows.SETTLED)
        return settled
    refuse_unless_sound(intent, row)
    _refuse_overlap(db, row)
    recorded = _record(db, intent, row)
    _note(db, recorded, judged)
    if batch is not None:
        routed.note(db, recorded, batch)
    return recorded


def _note(db: Connection, row: LedgerRow, judged: Judged | None) -> None:
    """What the rules found in the batch of this row."""
    if judged is not None and row.id is not None:
        rule_counts.note(db, row.job, row.id, judged)
        windows.touch(db, judged.windows_of or row.job, row.id, judged)


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
    if not row.range.is_table and row.read + row.gaps != row.span:
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
    end = dict(range_.end) if range_.is_table else _ends(db, job, range_)
    return Range(range_.source, range_.source_id, {}, end)


def rebuild(
    db: Connection,
    rows: Iterable[LedgerRow],
    judged: Callable[[LedgerRow], Judged | None] = lambda row: None,
) -> int:
    """Add the rows that are missing, with an intent each, and say how many they were."""
    return sum(_restore(db, row, judged(row)) for row in rows)


def _restore(db: Connection, row: LedgerRow, judged: Judged | None) -> int:
    if _same_range(db, row) is not None:
        return 0
    intent = intent_rows.begin(
        db,
        Intent(None, row.job, row.run, row.range, row.revisions, row.batch_time, row.batch_id),
    )
    refuse_unless_sound(intent, row)
    _refuse_overlap(db, row)
    _note(db, _record(db, intent, replace(row, rebuilt=True)), judged)
    return 1


def _record(db: Connection, intent: Intent, row: LedgerRow) -> LedgerRow:
    if row.range.starts_anew:
        intent_rows.supersede(db, row.job)
    intent_rows.close(db, intent, intent_rows.SETTLED)
    values: dict[str, Any] = {
        **vars(row),
        "intent": intent.id,
        "revisions": list(row.revisions),
        "outcomes": dict(row.outcomes),
        "snapshots": dict(row.snapshots),
        **intent_rows.range_columns(row.range),
    }
    del values["id"], values["range"]
    key = db.execute(insert(ledger).values(**values)).inserted_primary_key
    stored = replace(row, id=key[0] if key else None)
    _record_pieces(db, stored)
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
    if row.range.is_table:
        return None if row.range.starts_anew else _same_start(db, row)
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
    return db.scalar(query.where(*same, *source, intents.c.state == intent_rows.SETTLED).limit(1))


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
    wanted = intent_rows.range_columns(row.range)
    query = select(ledger).where(
        ledger.c.job == row.job, *(ledger.c[name] == value for name, value in wanted.items())
    )
    if row.range.starts_anew:
        query = query.where(ledger.c.batch_time == row.batch_time)
    found = db.execute(query.limit(1)).mappings().first()
    return _row(found) if found else None


def _row(row: RowMapping) -> LedgerRow:
    values: dict[str, Any] = {str(name): value for name, value in row.items()}
    range_ = Range(*(values.pop(name) for name in ("source", "source_id", "start", "end")))
    del values["intent"]
    values["revisions"] = tuple(values["revisions"])
    return LedgerRow(**values, range=range_)


def _words(range_: Range) -> str:
    return f"{range_.source} from {dict(range_.start)} to {dict(range_.end)}"
