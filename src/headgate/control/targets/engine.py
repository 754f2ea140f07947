"""Our own engine as a target: what is wanted is a row in the ops store, the router does the rest."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from headgate.control.targets.model import Deployment, Observed, State
from headgate.errors import NotFoundError
from headgate.store.routing_model import Seen, Standing, Wanted

if TYPE_CHECKING:
    from headgate.store.routing import RoutingStore

STATES = {
    Standing.LIVE: State.RUNNING,
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
        )
        if self._wanted(wanted.filter) != row:
            self._routing.want(row)
        return (wanted.deployment,)

    def observe(self, filter_id: str) -> Observed:
        """What the router saw of the newest order; what it says of an older one is not an answer."""
        wanted, seen = self._wanted(filter_id), self._seen(filter_id)
        if wanted is None:
            standing = seen.standing if seen else Standing.OFF
            state = State.ABSENT if standing in (Standing.OFF, Standing.FAILED) else State.PENDING
            return Observed(filter_id, state)
        if seen is None or not _answers(seen, wanted):
            return Observed(filter_id, State.PENDING, wanted.revision, wanted.deployment)
        return Observed(
            filter=filter_id,
            state=STATES[seen.standing],
            revision=seen.revision,
            deployment=seen.deployment,
            reason=seen.reason,
            cutover=dict(seen.cutover),
            statement_ids=(seen.deployment,),
            at=seen.at,
        )

    def pause(self, filter_id: str, *, paused: bool) -> None:
        wanted = self._wanted(filter_id)
        if wanted is None:
            raise NotFoundError(f"{filter_id} is not deployed to the engine")
        if wanted.paused != paused:
            self._routing.want(replace(wanted, paused=paused))

    def remove(self, filter_id: str) -> None:
        if self._wanted(filter_id) is not None:
            self._routing.unwant(filter_id)

    def _wanted(self, filter_id: str) -> Wanted | None:
        return next((row for row in self._routing.wanted() if row.filter == filter_id), None)

    def _seen(self, filter_id: str) -> Seen | None:
        return next((row for row in self._routing.seen() if row.filter == filter_id), None)


def _answers(seen: Seen, wanted: Wanted) -> bool:
    """Whether the router speaks of this order, in its latest form."""
    if (seen.deployment, seen.revision) != (wanted.deployment, wanted.revision):
        return False
    troubled = seen.standing in (Standing.SUSPENDED, Standing.FAILED)
    return troubled or (seen.standing is Standing.PAUSED) == wanted.paused
