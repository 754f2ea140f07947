"""Asking for the replays that filters are owed: a few at a time, as jobs of their own."""

from __future__ import annotations

from collections.abc import Iterable

from headgate.core.ledger.ops_store import OpsStore
from headgate.core.ledger.store_model import ACTIVE, JobSpec
from headgate.core.sql.compile_fragments import job_name
from headgate.errors import ConflictError
from headgate.filters.store.routing_model import Owing, Standing

REPLAY = "replay"
# Live traffic goes first: more at once would only wait for each other.
AT_ONCE = 2


class ReplayRequests:
    """Looks for offsets that filters of one source are owed and that no run is judging."""

    def __init__(self, store: OpsStore, source: str) -> None:
        self._store, self._source = store, source

    def look(self) -> tuple[str, ...]:
        """The jobs that were asked for now."""
        waiting = self._waiting()
        if not waiting:
            return ()
        active = {run.job for run in self._store.runs(states=ACTIVE) if run.kind == REPLAY}
        free = [filter for filter in waiting if job_name(REPLAY, filter) not in active]
        return tuple(self._asked(free[: max(0, AT_ONCE - len(active))]))

    def _waiting(self) -> list[str]:
        owed = self._store.routing.owed(states=(Owing.WAITING,))
        filters = list(dict.fromkeys(one.filter for one in owed if one.source == self._source))
        if not filters:
            return []
        live = {
            one.filter
            for one in self._store.routing.seen(self._source)
            if one.standing is Standing.LIVE
        }
        return [filter for filter in filters if filter in live]

    def _asked(self, filters: Iterable[str]) -> Iterable[str]:
        for filter in filters:
            job = job_name(REPLAY, filter)
            try:
                self._store.submit(JobSpec(job, REPLAY, filter, "batch", ""))
            except ConflictError:  # somebody was quicker
                continue
            yield job
