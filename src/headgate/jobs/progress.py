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

    def batch(self, row: LedgerRow | None) -> None:
        if row is None:
            return
        self._batches += 1
        self._records += row.read
        for name, n in row.outcomes.items():
            self._outcomes[name] = self._outcomes.get(name, 0) + n
        seconds = max(time.monotonic() - self._started, 1e-3)
        words = ", ".join(f"{n:,} {name}" for name, n in self._outcomes.items())
        self._context.report(
            Progress(self._batches, self._records, rate=self._records / seconds, words=words)
        )
