"""Our own engine as a target: what is wanted is a row in the ops store, the router does the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from headgate.filters.store.routing_model import Seen, Standing, Wanted
from headgate.filters.targets.model import Deployment, Held, Observed, State

if TYPE_CHECKING:
    from headgate.filters.store.routing import RoutingStore

STATES = {
    Standing.LIVE: State.RUNNING,
    Standing.AHEAD: State.RUNNING,
    Standing.PAUSED: State.PAUSED,
    Standing.SUSPENDED: State.FAILED,
    Standing.FAILED: State.FAILED,
    Standing.OFF: State.ABSENT,
}


class EngineTarget:
    """Writes what is wanted and reads what the router saw; one row each, so nothing is half done."""

    name = "engine"

    def __init__(self, routing: RoutingStore) -> None:
        self._routing = routing

    def deploy(self, wanted: Deployment) -> tuple[str, ...]:
        row = Wanted(
            filter=wanted.filter,
            source=wanted.source,
            revision=wanted.revision,
            content=wanted.content,
            topic=wanted.topic,
            deployment=wanted.deployment,
            paused=wanted.paused,
            backfill=wanted.backfill,
            since=wanted.since,
        )
        self._routing.want(row)
        return (wanted.deployment,)

    def observe(self, wanted: Deployment) -> Observed:
        """What the router saw of the newest order; what it says of an older one is no answer."""
        row = self._routing.wanted_filter(wanted.filter)
        seen = self._routing.seen_filter(wanted.filter)
        if row is None:
            gone = seen is None or seen.standing is Standing.OFF
            return Observed(wanted.filter, State.ABSENT if gone else State.PENDING)
        if seen is None or not _answers(seen, row):
            return Observed(wanted.filter, State.PENDING, row.revision, row.deployment)
        return Observed(
            filter=wanted.filter,
            state=STATES[seen.standing],
            revision=seen.revision,
            deployment=seen.deployment,
            reason=seen.reason,
            cutover=dict(seen.cutover),
            statement_ids=(seen.deployment,),
            at=seen.at,
        )

    def remove(self, wanted: Deployment) -> None:
        self._routing.unwant(wanted.filter)

    def held(self) -> Mapping[str, Held]:
        return {row.filter: Held(row.deployment, row.paused) for row in self._routing.wanted()}


def _answers(seen: Seen, wanted: Wanted) -> bool:
    """Whether the router speaks of this order, in its latest form."""
    if (seen.deployment, seen.revision) != (wanted.deployment, wanted.revision):
        return False
    troubled = seen.standing in (Standing.SUSPENDED, Standing.FAILED)
    return troubled or (seen.standing is Standing.PAUSED) == wanted.paused
