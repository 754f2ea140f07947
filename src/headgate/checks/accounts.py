"""Do the accounts of a dataset add up? Evidence in, lines of the account out; no clock, no disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from headgate.engine.markers import PREFIX
from headgate.store.coverage import gaps, overlaps, pieces, since_rebuild
from headgate.store.model import LedgerRow

MARKER = f"{PREFIX}job"


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
    """A snapshot in a table's history, and that of the staged one it was published from."""

    id: int
    operation: str
    summary: Mapping[str, str]
    source_summary: Mapping[str, str] | None = None

    def is_ours(self, settled: frozenset[int]) -> bool:
        """Our marker, its source's, or a ledger row that names it or its source."""
        source = self.summary.get("source-snapshot-id", "")
        named = self.id in settled or (source.isdigit() and int(source) in settled)
        return named or MARKER in self.summary or MARKER in (self.source_summary or {})

    def only_rewrites(self) -> bool:
        added, deleted = self.summary.get("added-records"), self.summary.get("deleted-records")
        return self.operation == "replace" and added == deleted


@dataclass(frozen=True)
class TableEvidence:
    """What a table holds now: rows of this dataset, their content hash, and its history."""

    name: str
    rows: int
    content_hash: str
    columns: tuple[str, ...]
    metadata_file: str
    snapshot_id: int | None
    committed_at: datetime | None
    commits: tuple[Commit, ...]
    where: str = ""


@dataclass(frozen=True)
class TopicEvidence:
    """What the broker says of a topic."""

    topic_id: str
    begin: Mapping[str, int]
    end: Mapping[str, int]


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


@dataclass(frozen=True)
class Sums:
    """The ledger of one dataset, summed."""

    read: int
    gaps: int
    accepted: int
    refused: int
    tombstones: int
    kept: int
    duplicates: int
    filtered: int


def sums(evidence: Evidence) -> Sums:
    bronze, silver = evidence.bronze_ledger, since_rebuild(evidence.silver_ledger)
    return Sums(
        read=sum(row.read for row in bronze),
        gaps=sum(row.gaps for row in bronze),
        accepted=_outcome(bronze, "accepted"),
        refused=_outcome(bronze, "refused"),
        tombstones=_outcome(bronze, "tombstone"),
        kept=_outcome(silver, "kept"),
        duplicates=_outcome(silver, "duplicate") + _outcome(silver, "replaced"),
        filtered=_outcome(silver, "filtered"),
    )


def _outcome(rows: Sequence[LedgerRow], name: str) -> int:
    return sum(row.outcomes.get(name, 0) for row in rows)


def account(evidence: Evidence) -> tuple[Line, ...]:
    """Every line of the account; it holds when none of them is FAIL."""
    total = sums(evidence)
    return (
        _something(total),
        _produced(evidence, total),
        _silver_sum(total),
        _offsets(evidence),
        _steps(evidence),
        _open_batches(evidence),
        _origins(evidence),
        _rows("bronze rows", evidence.bronze, total.accepted),
        _rows("dead letters", evidence.dead_letters, total.refused),
        _rows("silver rows", evidence.silver, total.kept),
        *(_history(table, evidence) for table in _tables(evidence)),
    )


def produced(evidence: Evidence) -> int:
    """Records ever put on the topic, by the broker's offsets when it answers, else by the ledger."""
    return _on_topic(evidence, sums(evidence))[0]


def line(name: str, holds: bool, words: str, detail: str = "") -> Line:
    if holds:
        return Line(name, Verdict.PASS, words)
    return Line(name, Verdict.FAIL, words.replace(" = ", " ≠ ", 1), detail)


def _something(total: Sums) -> Line:
    # An account of nothing would hold vacuously.
    words = f"{total.read:,} records read, {total.kept:,} rows in silver"
    return line("records", total.read > 0 and total.kept > 0, words, "nothing has been processed")


def _produced(evidence: Evidence, total: Sums) -> Line:
    parts = total.accepted + total.refused + total.tombstones
    ever, waiting, note = _on_topic(evidence, total)
    if waiting and evidence.streaming:
        note, ever, waiting = f"{waiting:,} more wait on the topic", ever - waiting, 0
    words = (
        f"produced {ever:,} = bronze {total.accepted:,}"
        f" + dead letters {total.refused:,} + tombstones {total.tombstones:,}"
    )
    if ever == parts:
        return Line("produced", Verdict.WARN if note else Verdict.PASS, words, note)
    detail = f"{waiting:,} records on the topic have not been read" if waiting else note
    return line("produced", False, words, detail or f"{ever - parts:,} not accounted for")


def _on_topic(evidence: Evidence, total: Sums) -> tuple[int, int, str]:
    """Records ever produced, those not yet read, and why the broker could not confirm them."""
    broker, newest = evidence.on_broker, _newest_generation(evidence.bronze_ledger)
    if broker is None:
        return total.read, 0, f"by the ledger alone: {evidence.why_no_broker}"
    if newest and newest[-1].range.source_id != broker.topic_id:
        return total.read, 0, f"by the ledger alone: the topic {evidence.topic} was made again"
    first = _firsts(newest)
    ends = _ends(newest)
    waiting = sum(end - ends.get(p, broker.begin.get(p, 0)) for p, end in broker.end.items())
    span = sum(end - first.get(p, broker.begin.get(p, 0)) for p, end in broker.end.items())
    older = total.read - sum(row.read for row in newest)
    return older + span - sum(row.gaps for row in newest), waiting, ""


def _newest_generation(rows: Sequence[LedgerRow]) -> tuple[LedgerRow, ...]:
    return tuple(row for row in rows if row.range.source_id == rows[-1].range.source_id)


def _firsts(rows: Sequence[LedgerRow]) -> dict[str, int]:
    found: dict[str, int] = {}
    for row in rows:
        for piece in pieces(row.range):
            found[piece.partition] = min(piece.start, found.get(piece.partition, piece.start))
    return found


def _ends(rows: Sequence[LedgerRow]) -> dict[str, int]:
    found: dict[str, int] = {}
    for row in rows:
        for piece in pieces(row.range):
            found[piece.partition] = max(piece.end, found.get(piece.partition, piece.end))
    return found


def _silver_sum(total: Sums) -> Line:
    words = (
        f"bronze {total.accepted:,} = silver {total.kept:,}"
        f" + duplicates {total.duplicates:,} + filtered {total.filtered:,}"
    )
    rest = total.accepted - total.kept - total.duplicates - total.filtered
    detail = f"silver has not read {rest:,} rows" if rest > 0 else f"silver read {-rest:,} too many"
    return line("silver", rest == 0, words, detail)


def _offsets(evidence: Evidence) -> Line:
    rows = evidence.bronze_ledger
    broken = (*gaps(rows), *overlaps(rows))
    words = f"{len(_ends(rows))} partitions, {len(rows)} batches, every offset once and in turn"
    return line("offsets", not broken, words, "; ".join(seam.sentence() for seam in broken))


def _steps(evidence: Evidence) -> Line:
    rows = since_rebuild(evidence.silver_ledger)
    broken = [seam.sentence() for seam in gaps(rows)]
    if rows and not rows[0].range.starts_anew:
        broken.append("its first step does not start from nothing")
    words = f"silver followed bronze in {len(rows)} steps without a break"
    return line("steps", not broken, words, "; ".join(broken))


def _open_batches(evidence: Evidence) -> Line:
    open_, words = evidence.open_batches, "no batch is left open"
    if open_ and evidence.streaming:
        return Line("open batches", Verdict.WARN, words, f"{open_} under way")
    return line("open batches", not open_, words, f"{open_} begun and not settled")


def _origins(evidence: Evidence) -> Line:
    words = "every partition and offset stands once in bronze or in the dead letters"
    found = evidence.repeated_origins
    return line("origins", found == 0, words, f"{found:,} stand more than once")


def _rows(name: str, table: TableEvidence | None, expected: int) -> Line:
    if table is None:
        return line(name, expected == 0, f"no table, ledger {expected:,}", "the table is missing")
    words = f"{table.name} {table.rows:,} = ledger {expected:,}"
    return line(name, table.rows == expected, words, f"{table.rows - expected:+,} in the table")


def _tables(evidence: Evidence) -> tuple[TableEvidence, ...]:
    found = (evidence.bronze, evidence.dead_letters, evidence.silver)
    return tuple(table for table in found if table is not None)


def _history(table: TableEvidence, evidence: Evidence) -> Line:
    known = evidence.settled
    foreign = [c for c in table.commits if not c.is_ours(known) and not c.only_rewrites()]
    words = f"all {len(table.commits)} snapshots of {table.name} are ours"
    detail = ", ".join(f"{c.operation} {c.id}" for c in foreign)
    return line(f"history of {table.name}", not foreign, words, f"not ours: {detail}")
