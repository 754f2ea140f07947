"""What the account of a dataset rests on, its sums, and a line of it. Values only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from headgate.checks.topic import NOT_COUNTED, Recount, TopicEvidence
from headgate.engine.markers import PREFIX
from headgate.store.coverage import Piece, pieces, since_rebuild
from headgate.store.model import LedgerRow

MARKER = f"{PREFIX}job"
# A snapshot of which the summary names none of these has the files of its parent.
FILE_CHANGES = (
    "added-data-files",
    "deleted-data-files",
    "added-delete-files",
    "removed-delete-files",
)
# What a backfill has added (its net) comes to silver again as one of these.
DUPLICATES = ("duplicate", "replaced", "backfilled")


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


@dataclass(frozen=True)
class Evidence:
    """Everything that the account of one dataset rests on.

    `settled` are the snapshots that the whole ledger names, other datasets included: they share
    the dead-letter table.
    """

    dataset: str
    topic: str
    streaming: bool
    bronze_ledger: tuple[LedgerRow, ...]
    silver_ledger: tuple[LedgerRow, ...]
    open_batches: int
    settled: frozenset[int]
    bronze: TableEvidence | None
    silver: TableEvidence | None
    dead_letters: TableEvidence | None
    repeated_origins: int
    on_broker: TopicEvidence | None
    why_no_broker: str = ""
    recount: Recount = NOT_COUNTED
    backfill_ledger: tuple[LedgerRow, ...] = ()
    gaps: tuple[AcceptedGap, ...] = ()
    declared_topic: str = ""
    is_declared: bool = True

    @property
    def confirmed(self) -> TopicEvidence | None:
        """The topic that the newest batch has read, where the broker still has it."""
        topic = self.on_broker
        return topic if topic and not topic.made_again(self.bronze_ledger) else None


@dataclass(frozen=True)
class Sums:
    """The ledger of one dataset, summed."""

    read: int
    gaps: int
    expired: int
    accepted: int
    refused: int
    tombstones: int
    kept: int
    duplicates: int
    filtered: int


def sums(evidence: Evidence) -> Sums:
    bronze, silver = evidence.bronze_ledger, since_rebuild(evidence.silver_ledger)
    net = sum(row.net for row in backfills(evidence))
    return Sums(
        read=sum(row.read for row in bronze),
        gaps=sum(row.gaps for row in bronze if not row.is_accepted_gap),
        expired=sum(row.gaps for row in bronze if row.is_accepted_gap),
        accepted=_outcome(bronze, "accepted"),
        refused=_outcome(bronze, "refused"),
        tombstones=_outcome(bronze, "tombstone"),
        kept=_outcome(silver, "kept") + net,
        duplicates=sum(_outcome(silver, name) for name in DUPLICATES) - net,
        filtered=_outcome(silver, "filtered"),
    )


def backfills(evidence: Evidence) -> tuple[LedgerRow, ...]:
    """Those that still count: what a rebuild found there, it has replaced."""
    silver = since_rebuild(evidence.silver_ledger)
    rows = evidence.backfill_ledger
    return tuple(row for row in rows if silver and row.committed_at > silver[0].committed_at)


def _outcome(rows: Sequence[LedgerRow], name: str) -> int:
    return sum(row.outcomes.get(name, 0) for row in rows)


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
