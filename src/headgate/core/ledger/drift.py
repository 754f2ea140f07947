"""Drift counts: which fields of a batch deviated from the declaration, and in how many records.

They are noted before the batch is published and stand by its start, so that a batch that is broken
off and finished by another run has them once.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, delete, func, insert, select

from headgate.core.ledger.canonical import canonical, fingerprint
from headgate.core.ledger.store_model import Drifted, DriftKind, FieldDrift, Intent
from headgate.core.ledger.tables import drift

LONGEST_NAME = 200


def note(db: Connection, intent: Intent, found: Iterable[FieldDrift]) -> None:
    """The counts of this batch; a field that was noted before gets the new count."""
    batch = {
        "job": intent.job,
        "source_id": intent.range.source_id,
        "start": fingerprint(canonical(dict(intent.range.start))),
    }
    same_batch = [drift.c[name] == value for name, value in batch.items()]
    for field in found:
        key = {"kind": field.kind.value, "field": shortened(field.field)}
        same = [*same_batch, *(drift.c[name] == value for name, value in key.items())]
        db.execute(delete(drift).where(*same))
        values = {**batch, **key, "records": field.records, "batch_time": intent.batch_time}
        db.execute(insert(drift).values(**values))


def find(db: Connection, job: str) -> tuple[Drifted, ...]:
    """Every field that ever deviated, the most frequent first."""
    records = func.sum(drift.c.records)
    times = (func.min(drift.c.batch_time), func.max(drift.c.batch_time))
    query = (
        select(drift.c.field, drift.c.kind, records, *times, func.count())
        .where(drift.c.job == job)
        .group_by(drift.c.field, drift.c.kind)
        .order_by(records.desc(), drift.c.field, drift.c.kind)
    )
    return tuple(
        Drifted(row[0], DriftKind(row[1]), int(row[2]), row[3], row[4], int(row[5]))
        for row in db.execute(query)
    )


def shortened(field: str) -> str:
    """A name of any length, as it is kept and shown."""
    return field if len(field) <= LONGEST_NAME else f"{field[: LONGEST_NAME - 1]}…"
