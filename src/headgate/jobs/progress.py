"""How far a run has come, from its ledger rows."""

from __future__ import annotations

import time

from headgate.engine.context import RunContext
from headgate.store.model import LedgerRow, Progress


class RunProgress:
    """Adds up the batches of one run and reports the sum."""

    def __init__(self, context: RunContext) -> None:
        self._context = context
        self._started = time.monotonic()
        self._batches = self._records = 0
        self._outcomes: dict[str, int] = {}

    def begin(self, records: int) -> None:
        """A batch of this many records is under way."""
        total = self._records + records
        self._report(total, f"{self._words()}; {records:,} under way".removeprefix("; "))

    def batch(self, row: LedgerRow | None) -> None:
        """A batch has its outcome."""
        if row is None:
            self._report(self._records, self._words())
            return
        self._batches += 1
        self._records += row.read
        for name, n in row.outcomes.items():
            self._outcomes[name] = self._outcomes.get(name, 0) + n
        self._report(self._records, self._words())

    def _words(self) -> str:
        return ", ".join(f"{n:,} {name}" for name, n in self._outcomes.items())

    def _report(self, total: int, words: str) -> None:
        rate = self._records / max(time.monotonic() - self._started, 1e-3)
        self._context.report(Progress(self._batches, self._records, total, rate, words))
