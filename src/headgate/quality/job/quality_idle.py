"""Windows of jobs that no longer run: they close half a minute after the last record, as all do.

A run closes its own windows. What a stopped, failed or killed one leaves open is closed here, by the
engine, in a thread of its own.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import datetime

from pyspark.sql import SparkSession

from headgate.config.settings import Settings
from headgate.core.ledger.ops_store import OpsStore, utc_now
from headgate.core.ledger.store_model import ACTIVE
from headgate.core.metrics.metrics_windows import IDLE
from headgate.quality.job.quality_windows import emitter
from headgate.quality.revision import deployed, fetch

LOOK_SECONDS = 5.0
STOP_SECONDS = 30.0


@contextmanager
def closing_idle(session: SparkSession, store: OpsStore, settings: Settings) -> Generator[None]:
    """Close what is left open, as long as the engine is there."""
    left, stop = LeftOpen(session.newSession(), store, settings), threading.Event()
    thread = threading.Thread(target=left.keep, args=(stop,), name="windows", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(STOP_SECONDS)


class LeftOpen:
    """Looks for windows that nobody else will close."""

    def __init__(
        self,
        session: SparkSession,
        store: OpsStore,
        settings: Settings,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self._session, self._store, self._settings = session, store, settings
        self._clock = clock

    def keep(self, stop: threading.Event) -> None:
        while not stop.wait(LOOK_SECONDS):
            try:
                self.look()
            except Exception as error:  # the store or the lake may be away for a while
                logging.getLogger("headgate").warning("windows: %s", error)

    def look(self) -> int:
        """Close the windows of every job that is idle; how many have a record."""
        jobs = self._store.jobs_with_pending_windows()
        return sum(self._close(job) for job in jobs if self._is_idle(job))

    def _is_idle(self, job: str) -> bool:
        """Whether no run of it is under way, no batch half done, and its last record long ago."""
        latest, last = self._store.latest(job), self._store.last_record_at(job)
        if last is None or (latest is not None and latest.state in ACTIVE):
            return False
        return self._clock() - last >= IDLE

    def _close(self, job: str) -> int:
        name = job.partition("-")[2]
        revision = deployed(self._store, name)
        if revision is None:
            return 0
        rules = fetch(self._store, revision)
        with_sums = (self._session, self._store, self._settings, job, rules)
        return emitter(*with_sums, clock=self._clock).close_due()
