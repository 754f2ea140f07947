"""How far a run has come, from its ledger rows."""

from __future__ import annotations

import time

from headgate.core.engine.context import RunContext
from headgate.core.ledger.store_model import LedgerRow, Progress


class RunProgress:
    """Adds up the batches of one run and reports the sum."""

    def __init__(self, context: RunContext) -> None:
        self._context = context
        self._started = time.monotonic()
        # A run that is taken up again goes on counting.
        before = context.store.run(context.run.job, context.run.number).progress
        self._batches, self._records = before.batches, before.records
        self._outcomes = dict(before.outcomes)
        self._before = before.records
        self._note = ""

    def note(self, words: str) -> None:
        """Something that whoever reads the outcome should know."""
        self._note = words

    def begin(self, records: int) -> None:
        """A batch of this many records is under way."""
        total = self._records + records
        self._report(total, f"{self._words()}; {records:,} under way".removeprefix("; "))

    def batch(self, row: LedgerRow | None) -> None:
        """A batch has its outcome; the note on it is told with it, not with the next one."""
        if row is not None:
            self._batches += 1
            self._records += row.read
            for name, n in row.outcomes.items():
                self._outcomes[name] = self._outcomes.get(name, 0) + n
        self._report(self._records, self._words())
        self._note = ""

    def _words(self) -> str:
        counts = ", ".join(f"{n:,} {name}" for name, n in self._outcomes.items() if n)
        return "; ".join(part for part in (counts, self._note) if part)

    def _report(self, total: int, words: str) -> None:
        own = self._records - self._before
        rate = own / max(time.monotonic() - self._started, 1e-3)
        self._context.report(
            Progress(self._batches, self._records, total, rate, words, self._outcomes)
        )
