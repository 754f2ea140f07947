"""Asks the broker for a topic's offsets, and counts the records of settled batches again, by a reader other than Spark.

Above 2,000,000 offsets, or after a minute, nothing is counted again unless the caller asks for it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from headgate.config.settings import Settings
from headgate.core.accounting.evidence import NOTHING_LEFT, BatchCount, Recount, TopicEvidence
from headgate.core.kafka.topics import TopicGaps, Topics
from headgate.core.ledger.model import LedgerRow
from headgate.core.ledger.offset_ranges import first_offsets, last_offsets, pieces
from headgate.errors import HeadgateError

if TYPE_CHECKING:
    from headgate.core.kafka.reader import Stretch


# Above it the count would no longer be a matter of seconds.
MOST_OFFSETS = 2_000_000
SECONDS, NO_LIMIT = 60.0, float("inf")


def recount(
    bootstrap: str,
    topic: str,
    rows: Sequence[LedgerRow],
    evidence: TopicEvidence,
    *,
    however_many: bool = False,
) -> Recount:
    """The records of each batch that is still whole on the topic, or why they were not counted."""
    mine = tuple(row for row in evidence.of(rows) if not row.is_accepted_gap)
    whole = tuple(row for row in mine if evidence.has_whole(row))
    offsets = sum(row.span for row in whole)
    if not whole:
        return Recount(left=len(mine), why_not=NOTHING_LEFT)
    if offsets > MOST_OFFSETS and not however_many:
        return Recount(why_not=f"they have {offsets:,} offsets; --count counts them all the same")
    try:
        counted = _count(bootstrap, topic, whole, NO_LIMIT if however_many else SECONDS)
    except HeadgateError as error:
        return Recount(why_not=error.why or error.what)
    return Recount(counted, left=len(mine) - len(whole))


def _count(
    bootstrap: str, topic: str, rows: Sequence[LedgerRow], seconds: float
) -> tuple[BatchCount, ...]:
    from headgate.core.kafka.reader import committed_records

    lanes = _Lanes(rows)
    found: Counter[int] = Counter()
    for record in committed_records(bootstrap, _stretch(topic, rows), seconds):
        found[lanes.batch_of(record.partition, record.offset)] += 1
    return tuple(BatchCount(row, found[i]) for i, row in enumerate(rows))


def _stretch(topic: str, rows: Sequence[LedgerRow]) -> Stretch:
    from headgate.core.kafka.reader import Stretch

    begin = {int(p): offset for p, offset in first_offsets(rows).items()}
    return Stretch(topic, begin, {int(p): offset for p, offset in last_offsets(rows).items()})


class _Lanes:
    """Which batch an offset belongs to; -1 for one that lies between two batches."""

    def __init__(self, rows: Sequence[LedgerRow]) -> None:
        lanes: dict[int, list[tuple[int, int, int]]] = {}
        for i, row in enumerate(rows):
            for piece in pieces(row.range):
                lanes.setdefault(int(piece.partition), []).append((piece.start, piece.end, i))
        self._lanes = {partition: sorted(lane) for partition, lane in lanes.items()}
        self._starts = {p: [start for start, _, _ in lane] for p, lane in self._lanes.items()}

    def batch_of(self, partition: int, offset: int) -> int:
        at = bisect_right(self._starts[partition], offset) - 1
        _, end, batch = self._lanes[partition][at]
        return batch if offset < end else -1


def ask_broker(settings: Settings, topic: str) -> tuple[TopicEvidence | None, str]:
    """What the broker says of the topic, or why it says nothing."""
    if not settings.bootstrap_servers:
        return None, "no broker is running"
    topics = Topics(settings.bootstrap_servers, timeout=settings.http_timeout)
    try:
        state = topics.describe(topic)
    except HeadgateError as error:
        return None, error.why or error.what
    if state is None:
        return None, f"the broker has no topic {topic}"
    gaps = _gaps(topics, topic)
    begin = {str(partition): offset for partition, offset in state.begin.items()}
    end = {str(partition): offset for partition, offset in state.end.items()}
    return TopicEvidence(state.topic_id, begin, end, gaps.compaction, gaps.transactions), ""


def _gaps(topics: Topics, topic: str) -> TopicGaps:
    try:
        return topics.gaps(topic)
    except HeadgateError:  # who may read a topic need not be allowed to see how it is set up
        return TopicGaps(compaction=False, transactions=False)
