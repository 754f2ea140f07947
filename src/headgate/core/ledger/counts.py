"""Counts of one batch beside its ledger row: rows that each rule matched, and fields that deviated.

Rule counts are written with the ledger row, so they add up to what was evaluated; a count without a rule is of all
rows. Drift counts are written before the batch is published, by its start: a batch that is finished by another
run has them once.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import ColumnElement, Connection, delete, func, insert, select

from headgate.core.ledger.model import (
    Drifted,
    DriftKind,
    FieldDrift,
    Intent,
    Judged,
    RuleCount,
    canonical,
    fingerprint,
)
from headgate.core.ledger.tables import drift, rule_counts

ALL_ROWS = ""


def note(db: Connection, job: str, batch: int, judged: Judged) -> None:
    """Keep the counts of a batch that is being settled."""
    judged_rows = RuleCount(ALL_ROWS, "", "", judged.rows, 0)
    counts = (*judged.counts, judged_rows)
    rows = [{"ledger": batch, "job": job, **count._asdict()} for count in counts]
    db.execute(insert(rule_counts), rows)


def sums(db: Connection, job: str) -> tuple[RuleCount, ...]:
    """Every rule of a job over all its batches."""
    mine = (rule_counts.c.job == job) & (rule_counts.c.rule != ALL_ROWS)
    return tuple(count for _, count in _sums(db, mine))


def sums_between(db: Connection, after: int, until: int) -> tuple[tuple[str, RuleCount], ...]:
    """The sums over some batches, by the numbers of their ledger rows, each with its job.

    Those without a rule are of all rows.
    """
    return _sums(db, (rule_counts.c.ledger > after) & (rule_counts.c.ledger <= until))


def _sums(db: Connection, which: ColumnElement[bool]) -> tuple[tuple[str, RuleCount], ...]:
    of = (rule_counts.c.job, rule_counts.c.rule, rule_counts.c.metric, rule_counts.c.severity)
    query = select(*of, func.sum(rule_counts.c.n), func.sum(rule_counts.c.matched))
    rows = db.execute(query.where(which).group_by(*of).order_by(*of))
    return tuple((row[0], RuleCount(*row[1:4], int(row[4]), int(row[5]))) for row in rows)


def by_batch(db: Connection, after: int, until: int) -> dict[int, tuple[RuleCount, ...]]:
    """What each rule found in each of some batches, by the numbers of their ledger rows."""
    which = (rule_counts.c.ledger > after) & (rule_counts.c.ledger <= until)
    query = select(rule_counts).where(which, rule_counts.c.rule != ALL_ROWS)
    found: dict[int, tuple[RuleCount, ...]] = {}
    for row in db.execute(query.order_by(rule_counts.c.ledger, rule_counts.c.rule)).mappings():
        count = RuleCount(*(row[name] for name in RuleCount._fields))
        found[row["ledger"]] = (*found.get(row["ledger"], ()), count)
    return found


def newest(db: Connection, job: str, limit: int) -> dict[int, tuple[RuleCount, ...]]:
    """The counts of the last batches of a job, by the number of their ledger row."""
    batches = select(rule_counts.c.ledger).where(rule_counts.c.job == job).distinct()
    last = list(db.scalars(batches.order_by(rule_counts.c.ledger.desc()).limit(limit)))
    query = select(rule_counts).where(rule_counts.c.job == job, rule_counts.c.ledger.in_(last))
    found: dict[int, tuple[RuleCount, ...]] = dict.fromkeys(reversed(last), ())
    query = query.where(rule_counts.c.rule != ALL_ROWS).order_by(rule_counts.c.rule)
    for row in db.execute(query).mappings():
        count = RuleCount(*(row[name] for name in RuleCount._fields))
        found[row["ledger"]] = (*found[row["ledger"]], count)
    return found


def judged_rows(db: Connection, job: str) -> dict[int, int]:
    """How many rows each batch of a job judged, by the number of its ledger row."""
    mine = (rule_counts.c.job == job) & (rule_counts.c.rule == ALL_ROWS)
    query = select(rule_counts.c.ledger, rule_counts.c.n).where(mine)
    return {int(row[0]): int(row[1]) for row in db.execute(query)}


LONGEST_NAME = 200


def note_drift(db: Connection, intent: Intent, found: Iterable[FieldDrift]) -> None:
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
