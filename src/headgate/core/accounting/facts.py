"""What the account of a dataset rests on, its sums, and a line of it. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from headgate.core.lake.markers import PREFIX
from headgate.core.ledger.coverage import Piece, pieces
from headgate.core.ledger.store_model import LedgerRow

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
