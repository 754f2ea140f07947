"""Closing windows: what is due gets its record, in the store; sinks send it from there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from headgate.core.ledger.ops_store import OpsStore
from headgate.core.ledger.store_model import Closing, Window
from headgate.core.metrics.dimensions import keep_dimensions
from headgate.core.metrics.metrics_windows import (
    WindowShape,
    WindowSums,
    closes_before,
    digest,
    record_of,
    stored,
)

AT_ONCE = 2000
Sums = Callable[[Sequence[datetime]], Mapping[datetime, WindowSums]]


class Emitter:
    """Closes the windows of one job. `sums` adds up the partials of the windows it is given."""

    def __init__(
        self,
        store: OpsStore,
        shape: WindowShape,
        sums: Sums,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._store, self._shape, self._sums, self._clock = store, shape, sums, clock
        keep_dimensions(store, shape)

    def close_due(self, *, everything: bool = False) -> int:
        """Close what is due, or everything at the end of a batch run; how many have a record.

        Without a window that is due this reads a few indexed rows and asks for no sums.
        """
        before = None if everything else self._before()
        if before is None and not everything:
            return 0
        closed = 0
        while found := self._store.pending_windows(self._shape.job, before, AT_ONCE):
            closed += self._close(found)
        if closed:
            self._store.forget_records(self._shape.job)
        return closed

    def _before(self) -> datetime | None:
        job = self._shape.job
        now = self._clock()
        greatest = self._store.greatest_event_time(job, now)
        return closes_before(self._shape, greatest, self._store.last_record_at(job), now)

    def _close(self, found: Sequence[Window]) -> int:
        sums = self._sums([window.window_start for window in found])
        closings = [self._closing(w, sums.get(w.window_start)) for w in found]
        return self._store.close_windows(closings)

    def _closing(self, window: Window, sums: WindowSums | None) -> Closing:
        """A window whose rows are all gone is said to be empty, if it was ever said to exist."""
        found = sums or WindowSums(revision=(window.record or {}).get("revision", ""))
        now = digest(found)
        if now == window.digest or (sums is None and not window.sequence):
            return Closing(window, now, None)
        record = record_of(self._shape, window.window_start, found, window.sequence + 1)
        return Closing(window, now, stored(record))
