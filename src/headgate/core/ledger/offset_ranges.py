"""Arithmetic on offset ranges: do the batches of a job join up without gap or overlap; union and difference.

Pure. `gaps` and `overlaps` compare ledger rows in settled order; `Spans` are offsets by partition.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest

from headgate.core.ledger.model import LedgerRow
from headgate.core.ledger.ranges import SNAPSHOT, OffsetRange, Range, is_rebuild


@dataclass(frozen=True)
class Piece:
    """The offsets `start` (inclusive) to `end` (exclusive) of one partition."""

    partition: str
    start: int
    end: int


@dataclass(frozen=True)
class Seam:
    """Two pieces that do not join: the second should start at `expected`, not at `found`."""

    job: str
    source: str
    source_id: str
    partition: str
    expected: int
    found: int

    def sentence(self) -> str:
        verb = "skips" if self.found > self.expected else "repeats"
        return (
            f"{self.job} {verb} {self.source} partition {self.partition}: "
            f"{self.expected} expected, {self.found} found"
        )


def pieces(range_: Range) -> tuple[Piece, ...]:
    """The parts of a topic's range that hold at least one offset; a table has none."""
    if not isinstance(range_, OffsetRange):
        return ()
    found = (Piece(p, range_.start.get(p, 0), end) for p, end in sorted(range_.end.items()))
    return tuple(piece for piece in found if piece.end > piece.start)


def span(range_: Range) -> int:
    """How many offsets a topic's range covers, gaps included."""
    return sum(piece.end - piece.start for piece in pieces(range_))


def first_offsets(rows: Iterable[LedgerRow]) -> dict[str, int]:
    """Where the first batch of each partition starts; partitions without an offset have none."""
    found: dict[str, int] = {}
    for piece in (piece for row in rows for piece in pieces(row.range)):
        found[piece.partition] = min(piece.start, found.get(piece.partition, piece.start))
    return found


def last_offsets(rows: Iterable[LedgerRow]) -> dict[str, int]:
    """Where the last batch of each partition ends."""
    found: dict[str, int] = {}
    for piece in (piece for row in rows for piece in pieces(row.range)):
        found[piece.partition] = max(piece.end, found.get(piece.partition, piece.end))
    return found


def since_rebuild(rows: Sequence[LedgerRow]) -> tuple[LedgerRow, ...]:
    """The rows of one job that still count: those from its last full rebuild on."""
    anew = [i for i, row in enumerate(rows) if is_rebuild(row.range)]
    return tuple(rows[anew[-1] :]) if anew else tuple(rows)


def coverage(rows: Sequence[LedgerRow]) -> Mapping[str, int]:
    """Where the next batch of this job must start: the end of each partition, or the snapshot."""
    if not rows:
        return {}
    newest = rows[-1].range
    if not isinstance(newest, OffsetRange):
        return dict(newest.end)
    ends: dict[str, int] = {}
    for row in rows:
        if (row.range.source, row.range.source_id) == (newest.source, newest.source_id):
            for partition, end in row.range.end.items():
                ends[partition] = max(end, ends.get(partition, 0))
    return ends


def gaps(rows: Sequence[LedgerRow]) -> tuple[Seam, ...]:
    """What lies between the first and the last offset of a partition and was never settled."""
    return tuple(seam for seam in seams(rows) if _is_gap(seam))


def overlaps(rows: Sequence[LedgerRow]) -> tuple[Seam, ...]:
    """What was settled twice."""
    return tuple(seam for seam in seams(rows) if not _is_gap(seam))


def _is_gap(seam: Seam) -> bool:
    return seam.partition == SNAPSHOT or seam.found > seam.expected


def seams(rows: Sequence[LedgerRow]) -> tuple[Seam, ...]:
    """Every place where one job's ranges do not join up, per source and partition."""
    tables = [row for row in rows if not isinstance(row.range, OffsetRange)]
    topics = [row for row in rows if isinstance(row.range, OffsetRange)]
    return (*_topic_seams(topics), *_table_seams(since_rebuild(tables)))


def _topic_seams(rows: Iterable[LedgerRow]) -> Iterable[Seam]:
    lanes: dict[tuple[str, str, str, str], list[Piece]] = defaultdict(list)
    for row in rows:
        for piece in pieces(row.range):
            key = (row.job, row.range.source, row.range.source_id, piece.partition)
            lanes[key].append(piece)
    for key, lane in sorted(lanes.items()):
        lane.sort(key=lambda piece: (piece.start, piece.end))
        reached = lane[0].end
        for piece in lane[1:]:
            if piece.start != reached:
                yield Seam(*key, expected=reached, found=piece.start)
            reached = max(reached, piece.end)


def _table_seams(rows: Sequence[LedgerRow]) -> Iterable[Seam]:
    for before, row in pairwise(rows):
        expected, found = before.range.end.get(SNAPSHOT, 0), row.range.start.get(SNAPSHOT, 0)
        if expected != found:
            r = row.range
            yield Seam(row.job, r.source, r.source_id, SNAPSHOT, expected, found)


Span = tuple[int, int]
Spans = Mapping[str, Sequence[Span]]


def between(start: Mapping[str, int], end: Mapping[str, int]) -> Spans:
    """From the one offsets to the others; a partition that `start` lacks is from the beginning."""
    found = {p: (start.get(p, 0), until) for p, until in end.items()}
    return {p: [span] for p, span in found.items() if span[1] > span[0]}


def merged(spans: Iterable[tuple[str, int, int]]) -> Spans:
    """Spans in any order, each given with its partition, as few as possible."""
    found: dict[str, list[Span]] = {}
    for partition, start, end in sorted(spans, key=lambda one: (one[0], one[1], one[2])):
        lane = found.setdefault(partition, [])
        if lane and start <= lane[-1][1]:
            lane[-1] = (lane[-1][0], max(lane[-1][1], end))
        elif end > start:
            lane.append((start, end))
    return {partition: lane for partition, lane in found.items() if lane}


def each(spans: Spans) -> Iterable[tuple[str, int, int]]:
    return ((p, start, end) for p, lane in spans.items() for start, end in lane)


def union(*parts: Spans) -> Spans:
    return merged(one for part in parts for one in each(part))


def minus(spans: Spans, without: Spans) -> Spans:
    """What of these is in none of the others."""
    known = merged(each(without))
    left = (
        (partition, *piece)
        for partition, start, end in each(spans)
        for piece in _rest((start, end), known.get(partition, ()))
    )
    return merged(left)


def _rest(span: Span, without: Sequence[Span]) -> Iterable[Span]:
    start, end = span
    for low, high in without:
        if high <= start or low >= end:
            continue
        if low > start:
            yield start, low
        start = max(start, high)
    if start < end:
        yield start, end


def size(spans: Spans) -> int:
    return sum(end - start for _, start, end in each(spans))


def first(spans: Spans, most: int) -> Spans:
    """The beginning of each partition's spans, about so many offsets in all."""
    share = max(1, most // max(1, len(spans)))
    return {p: [(lane[0][0], min(lane[0][1], lane[0][0] + share))] for p, lane in spans.items()}


def blocks(spans: Spans) -> list[tuple[dict[str, int], dict[str, int]]]:
    """As starts and ends per partition: the first spans of all partitions, then the second…"""
    lanes = [[(partition, span) for span in lane] for partition, lane in sorted(spans.items())]
    rows = ([one for one in row if one] for row in zip_longest(*lanes))
    return [({p: span[0] for p, span in row}, {p: span[1] for p, span in row}) for row in rows]
