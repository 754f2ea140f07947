"""What the broker says of a dataset's topic, held against the ledger. Pure: values in, sums out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headgate.core.ledger.coverage import first_offsets, last_offsets, pieces
from headgate.core.ledger.store_model import LedgerRow


@dataclass(frozen=True)
class TopicEvidence:
    """What the broker says of a topic; compaction and transactions leave offsets without a record."""

    topic_id: str
    begin: Mapping[str, int]
    end: Mapping[str, int]
    compacted: bool = False
    transactions: bool = False

    def of(self, rows: Sequence[LedgerRow]) -> tuple[LedgerRow, ...]:
        """The batches of this very topic, not of one of its name that was deleted."""
        return tuple(row for row in rows if row.range.source_id == self.topic_id)

    def made_again(self, rows: Sequence[LedgerRow]) -> bool:
        """Whether the newest batch is of a topic that is gone."""
        return bool(rows) and rows[-1].range.source_id != self.topic_id

    def has_whole(self, row: LedgerRow) -> bool:
        """Whether no offset of the batch has left the topic."""
        return all(piece.start >= self.begin.get(piece.partition, 0) for piece in pieces(row.range))


@dataclass(frozen=True)
class BatchCount:
    """The records of one batch, counted again on the topic."""

    batch: LedgerRow
    counted: int

    @property
    def surplus(self) -> int:
        return self.counted - self.batch.read


@dataclass(frozen=True)
class Recount:
    """The batches that were counted again, how many are no longer whole on the topic, or why none."""

    batches: tuple[BatchCount, ...] = ()
    left: int = 0
    why_not: str = ""

    @property
    def counted(self) -> int:
        return sum(batch.counted for batch in self.batches)

    @property
    def read(self) -> int:
        return sum(batch.batch.read for batch in self.batches)


NOTHING_LEFT = "the broker has removed records of every batch"
NOT_COUNTED = Recount(why_not="nobody asked for it")


@dataclass(frozen=True)
class OnTopic:
    """Records ever produced; of them those before the first batch, and those after the last."""

    produced: int
    before: int = 0
    after: int = 0


def on_topic(rows: Sequence[LedgerRow], topic: TopicEvidence, recount: Recount) -> OnTopic:
    """What the ledger read, set right by what was counted, and what it has not read."""
    mine = topic.of(rows)
    first, last = first_offsets(mine), last_offsets(mine)
    before = sum(max(0, first[p] - begin) for p, begin in topic.begin.items() if p in first)
    after = sum(end - last.get(p, topic.begin.get(p, 0)) for p, end in topic.end.items())
    surplus = sum(batch.surplus for batch in differing(recount, topic))
    produced = sum(row.read for row in rows) + surplus + before + after
    return OnTopic(produced, before, after)


def differing(recount: Recount, topic: TopicEvidence) -> tuple[BatchCount, ...]:
    """The batches that read another number of records than the topic has."""
    # Compaction may have removed records since they were read; it adds none.
    return tuple(
        batch
        for batch in recount.batches
        if batch.surplus > 0 or (batch.surplus < 0 and not topic.compacted)
    )


def begun_late(rows: Sequence[LedgerRow], topic: TopicEvidence) -> int:
    """In how many partitions the first batch begins above 0 and nothing before it is left to read."""
    first = first_offsets(topic.of(rows))
    return sum(0 < offset <= topic.begin.get(p, 0) for p, offset in first.items())
