"""What a run is given: session, store, settings, and the means to report and to be stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from headgate.config.settings import Settings
from headgate.core.engine.faults import Faults
from headgate.core.engine.protocol import BatchProtocol
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.ledger.store_model import Progress, Run
from headgate.errors import HeadgateError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class RunContext:
    """One run of one job on this driver; `failures` counts its attempts that failed by its own fault."""

    run: Run
    settings: Settings
    session: SparkSession
    store: OpsStore
    still_mine: Callable[[], None]
    stop: threading.Event = field(default_factory=threading.Event)
    faults: Faults = field(default_factory=Faults.from_environment)
    failures: int = 0

    def protocol(self) -> BatchProtocol:
        return BatchProtocol(self.store, self.faults, self.still_mine)

    def report(self, progress: Progress) -> None:
        self.store.report(self.run.job, self.run.number, progress)

    def waits(self, error: HeadgateError) -> None:
        """Something needed is away; the run goes on by itself once it is back."""
        self.store.trouble(self.run.job, self.run.number, error.code, error.one_line)

    def goes_on(self) -> None:
        """Nothing keeps the run waiting any more."""
        self.store.trouble(self.run.job, self.run.number, None, None)


class Job(Protocol):
    """A kind of job: it works until it is done or asked to stop."""

    def __call__(self, context: RunContext) -> None: ...
