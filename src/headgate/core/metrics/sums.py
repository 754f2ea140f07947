"""Sums over the whole ledger, kept up to date by reading only what came since.

They begin at the ledger's first row, so a counter that is made of them survives every restart.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime

from headgate.core.ledger.ops_store import OpsStore
from headgate.core.ledger.store_model import LedgerRow, RuleCount

AT_ONCE = 5_000
REMEMBERED = 3


@dataclass
class JobSums:
    """All batches of one job."""

    read: int = 0
    judged: int = 0
    gaps: int = 0
    batches: int = 0
    seconds: float = 0.0
    outcomes: Counter[str] = field(default_factory=Counter[str])
    last_durations: tuple[float, ...] = ()
    last_read: int = 0
    last_at: datetime | None = None

    def add(self, row: LedgerRow) -> None:
        self.read += row.read
        self.gaps += row.gaps
        self.outcomes.update(row.outcomes)
        if row.is_accepted_gap:
            return  # nobody worked on it
        took = max(0.0, (row.committed_at - row.batch_time).total_seconds())
        self.batches += 1
        self.seconds += took
        self.last_durations = (*self.last_durations, took)[-REMEMBERED:]
        self.last_read, self.last_at = row.read, row.committed_at


class Sums:
    """Per job the sums of its batches, per rule what it found, and per filter what it sent on."""

    def __init__(self, store: OpsStore) -> None:
        self._store = store
        self._until = 0
        self.jobs: dict[str, JobSums] = {}
        self.rules: dict[tuple[str, str, str, str], tuple[int, int]] = {}
        self.filters: dict[tuple[str, str], tuple[int, int]] = {}

    def refresh(self) -> None:
        """Add the rows that were settled since; rows are settled one after the other."""
        while rows := self._store.ledger_after(self._until, AT_ONCE):
            last = rows[-1].id
            assert last is not None
            for job, count in self._store.rule_counts_between(self._until, last):
                self._add(job, count)
            for key, found in self._store.routing.routed_between(self._until, last).items():
                n, refused = self.filters.get(key, (0, 0))
                self.filters[key] = (n + found[0], refused + found[1])
            for row in rows:
                self.jobs.setdefault(row.job, JobSums()).add(row)
            self._until = last

    def _add(self, job: str, count: RuleCount) -> None:
        if not count.rule:
            self.jobs.setdefault(job, JobSums()).judged += count.n
            return
        key = (job, count.rule, count.metric, count.severity)
        n, matched = self.rules.get(key, (0, 0))
        self.rules[key] = (n + count.n, matched + count.matched)
