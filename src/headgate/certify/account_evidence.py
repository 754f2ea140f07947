"""What the account of a dataset rests on, and its sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headgate.core.accounting.facts import AcceptedGap, TableEvidence
from headgate.core.accounting.topic import NOT_COUNTED, Recount, TopicEvidence
from headgate.core.ledger.coverage import since_rebuild
from headgate.core.ledger.store_model import LedgerRow

# What a backfill has added (its net) comes to silver again as one of these.
DUPLICATES = ("duplicate", "replaced", "backfilled")


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
