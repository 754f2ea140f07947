"""What a run says of itself while it goes on."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

from headgate.core.engine.run import RunContext, RunProgress
from headgate.core.ledger.model import LedgerRow, Progress
from headgate.core.ledger.ranges import TableRange

TIME = datetime(2024, 1, 1, tzinfo=UTC)
STEP = TableRange("bronze.orders", "u", None, 1)
ROW = LedgerRow(
    None, "silver-orders", 1, STEP, ("r",), TIME, 0, 5, 5, 0, {"kept": 5, "replaced": 0}, {}, TIME
)


@dataclass
class Context:
    """A run that has not reported yet; it notes the words of each report."""

    words: list[str] = field(default_factory=list[str])
    run: Any = field(default_factory=lambda: SimpleNamespace(job="silver-orders", number=1))

    @property
    def store(self) -> Any:
        return SimpleNamespace(run=lambda job, number: SimpleNamespace(progress=Progress()))

    def report(self, progress: Progress) -> None:
        self.words.append(progress.words)


def test_a_note_stays_with_the_batch_that_it_is_about() -> None:
    context = Context()
    progress = RunProgress(cast("RunContext", context))
    progress.note("rebuilt: the declaration has changed")
    progress.begin(5)
    progress.batch(ROW)
    assert context.words[-1] == "5 kept; rebuilt: the declaration has changed"
    progress.begin(5)
    assert context.words[-1] == "5 kept; 5 under way"
    progress.batch(ROW)
    assert context.words[-1] == "10 kept"
