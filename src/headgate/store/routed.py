"""What each filter judged and sent on: it stands by the ledger's rows, so it is exactly what was settled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from sqlalchemy import Connection, func, insert, select

from headgate.store.model import LedgerRow
from headgate.store.routing_model import Routed, RoutedBatch, RoutedCount, RoutedRange, RoutedSum
from headgate.store.routing_tables import routed_batches, routed_counts, routing_sets
from headgate.store.tables import pieces


def note(db: Connection, row: LedgerRow, batch: RoutedBatch) -> None:
    """Keep the set and the counts of a batch that is being settled."""
    shared = {"ledger": row.id, "job": row.job}
    db.execute(insert(routed_batches).values(**shared, set_id=batch.set_id))
    counts = [{**shared, **vars(count)} for count in batch.counts if count.n or count.refused]
    if counts:
        db.execute(insert(routed_counts), counts)


def of_filter(db: Connection, filter: str) -> Routed:
    return Routed(filter, tuple(_joined(_ranges(db, filter))), _sums(db, filter))


def _ranges(db: Connection, filter: str) -> Iterable[RoutedRange]:
    query = (
        select(
            pieces.c.job,
            routing_sets.c.revision,
            pieces.c.source,
            pieces.c.source_id,
            pieces.c.partition,
            pieces.c.start,
            pieces.c.end,
        )
        .join(routed_batches, routed_batches.c.set_id == routing_sets.c.set_id)
        .join(pieces, pieces.c.ledger == routed_batches.c.ledger)
        .where(routing_sets.c.filter == filter)
        .order_by(pieces.c.source, pieces.c.source_id, pieces.c.partition, pieces.c.start)
    )
    return (RoutedRange(*row) for row in db.execute(query))


def _joined(ranges: Iterable[RoutedRange]) -> Iterable[RoutedRange]:
    """Pieces that follow upon each other, of one revision and job, as one."""
    last: RoutedRange | None = None
    for range_ in ranges:
        if last is not None and _follows(last, range_):
            last = replace(last, end=range_.end, batches=last.batches + 1)
            continue
        if last is not None:
            yield last
        last = range_
    if last is not None:
        yield last


def _follows(last: RoutedRange, next_: RoutedRange) -> bool:
    return replace(last, start=last.end, end=next_.end, batches=1) == next_


def _sums(db: Connection, filter: str) -> tuple[RoutedSum, ...]:
    of = (routed_counts.c.job, routed_counts.c.revision)
    query = select(*of, func.sum(routed_counts.c.n), func.sum(routed_counts.c.refused))
    query = query.where(routed_counts.c.filter == filter).group_by(*of).order_by(*of)
    return tuple(RoutedSum(row[0], row[1], int(row[2]), int(row[3])) for row in db.execute(query))


def sums(db: Connection, job: str | None = None) -> Mapping[str, tuple[int, int]]:
    """Per filter: records sent on and records refused, in all batches or in those of one job."""
    query = select(
        routed_counts.c.filter, func.sum(routed_counts.c.n), func.sum(routed_counts.c.refused)
    )
    if job is not None:
        query = query.where(routed_counts.c.job == job)
    rows = db.execute(query.group_by(routed_counts.c.filter).order_by(routed_counts.c.filter))
    return {row[0]: (int(row[1]), int(row[2])) for row in rows}


def sums_between(
    db: Connection, after: int, until: int
) -> Mapping[tuple[str, str], tuple[int, int]]:
    """Per job and filter, over some batches by the numbers of their ledger rows."""
    of = (routed_counts.c.job, routed_counts.c.filter)
    query = select(*of, func.sum(routed_counts.c.n), func.sum(routed_counts.c.refused)).where(
        routed_counts.c.ledger > after, routed_counts.c.ledger <= until
    )
    return {(row[0], row[1]): (int(row[2]), int(row[3])) for row in db.execute(query.group_by(*of))}


def batches(db: Connection, job: str) -> Mapping[int, RoutedBatch]:
    """The set and the counts of each batch of a job, by the number of its ledger row."""
    mine = select(routed_batches).where(routed_batches.c.job == job)
    found = {row.ledger: RoutedBatch(row.set_id) for row in db.execute(mine)}
    query = select(routed_counts).where(routed_counts.c.job == job)
    for row in db.execute(query.order_by(routed_counts.c.ledger, routed_counts.c.filter)):
        count = RoutedCount(row.filter, row.revision, row.n, row.refused)
        found[row.ledger] = replace(found[row.ledger], counts=(*found[row.ledger].counts, count))
    return found


def reached(db: Connection, job: str) -> Mapping[str, Mapping[str, int]]:
    """Where the last piece of each partition ends, by the id of the topic."""
    of = (pieces.c.source_id, pieces.c.partition)
    query = select(*of, func.max(pieces.c.end)).where(pieces.c.job == job).group_by(*of)
    found: dict[str, dict[str, int]] = {}
    for source_id, partition, end in db.execute(query):
        found.setdefault(str(source_id), {})[str(partition)] = int(end)
    return found
