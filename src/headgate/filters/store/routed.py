"""What each filter judged and sent, joined from the ledger's rows, so that it is exactly what was settled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import Connection, case, func, insert, select

from headgate.core.ledger.model import LedgerRow
from headgate.core.ledger.offset_ranges import Spans, each, merged
from headgate.core.ledger.tables import ledger, pieces
from headgate.filters.store.model import (
    RevisionCount,
    Routed,
    RoutedBatch,
    RoutedCount,
    RoutedRange,
    RoutedSum,
)
from headgate.filters.store.tables import routed_batches, routed_counts, routing_sets


@dataclass(frozen=True)
class RoutedRows:
    """The filter set of a batch and its counts by filter, as extra rows of its ledger row."""

    batch: RoutedBatch

    def write(self, db: Connection, row: LedgerRow) -> None:
        shared = {"ledger": row.id, "job": row.job}
        db.execute(insert(routed_batches).values(**shared, set_id=self.batch.set_id))
        counts = [{**shared, **vars(c)} for c in self.batch.counts if c.n or c.refused]
        if counts:
            db.execute(insert(routed_counts), counts)


def of_filter(db: Connection, filter: str) -> Routed:
    return Routed(filter, tuple(_ranges(db, filter)), _sums(db, filter))


def _ranges(db: Connection, filter: str) -> Iterable[RoutedRange]:
    """Pieces that follow upon each other, of one revision and job, as one; the database joins them."""
    lane = ("job", "revision", "source", "source_id", "partition")
    own = (
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
        .subquery()
    )
    by = [own.c[name] for name in lane]
    before = func.lag(own.c.end).over(partition_by=by, order_by=own.c.start)
    begins = case((before == own.c.start, 0), else_=1).label("begins")
    marked = select(own, begins).subquery()
    number = func.sum(marked.c.begins).over(
        partition_by=[marked.c[name] for name in lane], order_by=marked.c.start
    )
    islands = select(marked, number.label("island")).subquery()
    of = [islands.c[name] for name in lane]
    start = func.min(islands.c.start)
    query = select(*of, start, func.max(islands.c.end), func.count())
    query = query.group_by(*of, islands.c.island)
    ordered = query.order_by(islands.c.source, islands.c.source_id, islands.c.partition, start)
    return [RoutedRange(*row) for row in db.execute(ordered)]


def judged_within(
    db: Connection, filter: str, jobs: Sequence[str], source_id: str, within: Spans
) -> Spans:
    """What the filter has judged of these offsets, live or beside; all else is not looked at."""
    found: list[tuple[str, int, int]] = []
    for partition, start, end in each(within):
        query = (
            select(pieces.c.start, pieces.c.end)
            .join(routed_batches, routed_batches.c.ledger == pieces.c.ledger)
            .join(routing_sets, routing_sets.c.set_id == routed_batches.c.set_id)
            .where(
                pieces.c.job.in_(jobs),
                pieces.c.source_id == source_id,
                pieces.c.partition == partition,
                pieces.c.end > start,
                pieces.c.start < end,
                routing_sets.c.filter == filter,
            )
        )
        found += [(partition, int(row[0]), int(row[1])) for row in db.execute(query)]
    return merged(found)


def _sums(db: Connection, filter: str) -> tuple[RoutedSum, ...]:
    of = (routed_counts.c.job, routed_counts.c.revision)
    query = select(*of, func.sum(routed_counts.c.n), func.sum(routed_counts.c.refused))
    query = query.where(routed_counts.c.filter == filter).group_by(*of).order_by(*of)
    return tuple(RoutedSum(row[0], row[1], int(row[2]), int(row[3])) for row in db.execute(query))


def revision_counts(db: Connection, filter: str) -> tuple[RevisionCount, ...]:
    """The counts of each revision, in the order of their first batches.

    Judged is what a batch read. A filter that sent nothing has no row in `routed_counts`, hence the
    outer join.
    """
    own_counts = (routed_counts.c.ledger == ledger.c.id) & (routed_counts.c.filter == filter)
    query = (
        select(
            routing_sets.c.revision,
            func.sum(ledger.c.read),
            func.coalesce(func.sum(routed_counts.c.n), 0),
            func.coalesce(func.sum(routed_counts.c.refused), 0),
        )
        .join(routed_batches, routed_batches.c.set_id == routing_sets.c.set_id)
        .join(ledger, ledger.c.id == routed_batches.c.ledger)
        .outerjoin(routed_counts, own_counts)
        .where(routing_sets.c.filter == filter)
        .group_by(routing_sets.c.revision)
        .order_by(func.min(ledger.c.id))
    )
    rows = db.execute(query)
    return tuple(RevisionCount(row[0], int(row[1]), int(row[2]), int(row[3])) for row in rows)


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
