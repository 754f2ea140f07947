"""Evidence and results of accounting checks: topics, tables, commits, sums, and a line with its verdict. Values only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from headgate.core.lake.commits import PREFIX
from headgate.core.ledger.model import LedgerRow
from headgate.core.ledger.offset_ranges import Piece, first_offsets, last_offsets, pieces

if TYPE_CHECKING:
    from headgate.config.settings import Settings
    from headgate.core.lake.duckdb_reader import Lake
    from headgate.core.ledger.ops_store import OpsStore


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


MARKER = f"{PREFIX}job"
# A snapshot of which the summary names none of these has the files of its parent.
FILE_CHANGES = (
    "added-data-files",
    "deleted-data-files",
    "added-delete-files",
    "removed-delete-files",
)


class Verdict(StrEnum):
    """How one check came out."""

    PASS = "PASS"
    WARN = "WARN"
    FAIL = "FAIL"


@dataclass(frozen=True)
class Line:
    """One line of the account: what must hold, what was found, and whether it does."""

    name: str
    verdict: Verdict
    words: str
    detail: str = ""


@dataclass(frozen=True)
class Commit:
    """A snapshot in a table's history, and the summary of the staged one it was published from."""

    id: int
    operation: str
    summary: Mapping[str, str]
    source_summary: Mapping[str, str] | None = None
    parent_id: int | None = None

    @property
    def ids(self) -> frozenset[int]:
        """The ids by which a ledger row may name it: its own and that of its staged snapshot."""
        source = self.summary.get("source-snapshot-id", "")
        return frozenset({self.id, int(source)} if source.isdigit() else {self.id})

    @property
    def metadata(self) -> Mapping[str, str]:
        """Its summary, with what only the staged snapshot's says."""
        return {**(self.source_summary or {}), **self.summary}

    @property
    def added(self) -> int:
        return int(self.summary.get("added-records", 0))

    @property
    def gained(self) -> int:
        """By how many rows the table grew."""
        deleted = ("deleted-records", "added-position-deletes", "added-equality-deletes")
        return self.added - sum(int(self.summary.get(name, 0)) for name in deleted)

    def only_rewrites(self) -> bool:
        """Whether it wrote equally many rows anew, as compaction does."""
        added, deleted = self.summary.get("added-records"), self.summary.get("deleted-records")
        return self.operation == "replace" and added == deleted

    def only_marks(self) -> bool:
        """Whether it touched no file and has our commit metadata: a batch without a row, a fence."""
        return MARKER in self.metadata and not any(
            int(self.summary.get(name, 0)) for name in FILE_CHANGES
        )


@dataclass(frozen=True)
class CertifiedTable:
    """What the last certificate that held said of a table.

    `until` is the time of the newest batch that had written to it.
    """

    made_at: datetime
    snapshot_id: int | None
    rows: int
    content_hash: str
    columns: tuple[str, ...]
    until: datetime


@dataclass(frozen=True)
class TableEvidence:
    """What a table holds now: rows of this dataset, their content hash, and its history.

    `batches` counts the rows by the batch time that they bear. `certified` is the table as last
    certified, and `certified_now` the count and content hash that its certified rows have now; None
    where they cannot be told from rows that came since.
    """

    name: str
    rows: int
    content_hash: str
    columns: tuple[str, ...]
    metadata_file: str
    snapshot_id: int | None
    committed_at: datetime | None
    commits: tuple[Commit, ...]
    where: str = ""
    batches: Mapping[datetime, int] | None = None
    until: datetime | None = None
    certified: CertifiedTable | None = None
    certified_now: tuple[int, str] | None = None


@dataclass(frozen=True)
class AcceptedGap:
    """Records that expired unread, and who decided to go on without them."""

    batch: LedgerRow
    by: str

    @property
    def sentence(self) -> str:
        lanes = (f"partition {p.partition}: {p.start:,} to {p.end - 1:,}" for p in self._pieces)
        when = f"{self.batch.batch_time:%Y-%m-%d %H:%M:%S} UTC"
        return f"{', '.join(lanes)}, accepted by {self.by} at {when}"

    @property
    def _pieces(self) -> tuple[Piece, ...]:
        return pieces(self.batch.range)


def line(name: str, holds: bool, words: str, detail: str = "") -> Line:
    if holds:
        return Line(name, Verdict.PASS, words)
    return Line(name, Verdict.FAIL, words.replace(" = ", " ≠ ", 1), detail)


def open_line(batches: int, *, streaming: bool) -> Line:
    """A stream always has one under way; of anything else none may be left."""
    name, words = "open batches", "no batch is left open"
    if batches and streaming:
        return Line(name, Verdict.WARN, words, f"{batches} under way")
    return line(name, not batches, words, f"{batches} begun and not settled")


@dataclass(frozen=True)
class RuleAccount:
    """One rule table's part of the certificate."""

    table: str
    lines: tuple[Line, ...]
    tables: Mapping[str, TableEvidence]
    named: str = ""

    @property
    def title(self) -> str:
        return self.named or f"rules of {self.table}"

    @property
    def holds(self) -> bool:
        return all(line.verdict is not Verdict.FAIL for line in self.lines)


@dataclass(frozen=True)
class AccountKind:
    """How the jobs of one kind are accounted for: `account` gathers the evidence of a subject and judges it.

    `title` names a subject, in place of its `{}`, of which a certificate has no account.
    """

    job_kind: str
    title: str
    account: Callable[[Settings, OpsStore, Lake, str], RuleAccount]
