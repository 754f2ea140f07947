"""Where a filter can be deployed: the interface of a target, the deployment a record asks for, our engine as a target.

A deployment is made from the record alone: same record, same deployment. To deploy to the engine writes a row of
desired state, which the router follows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple, Protocol

from headgate.config.settings import Settings
from headgate.core.ledger.ops_store import OpsStore
from headgate.filters.loader import parse_filter
from headgate.filters.spec import Filter, canonical
from headgate.filters.store.control import ControlStore
from headgate.filters.store.model import (
    FilterRecord,
    Operation,
    Seen,
    Standing,
    TopicEnd,
    Wanted,
)
from headgate.filters.store.routing import RoutingStore


class State(StrEnum):
    """How a deployment stands where it runs."""

    PENDING = "pending"  # asked for, not up yet: look again
    RUNNING = "running"
    PAUSED = "paused"
    FAILED = "failed"
    ABSENT = "absent"


@dataclass(frozen=True)
class Deployment:
    """One revision of a filter that is to run; `deployment` names this very deployment.

    `since` is where the source ended when the filter was deployed.
    """

    filter: str
    source: str
    revision: str
    content: str
    topic: str
    deployment: str
    backfill: str = "none"
    paused: bool = False
    statements: tuple[str, ...] = ()
    since: TopicEnd | None = None


class Held(NamedTuple):
    """What a target was told of a filter last."""

    deployment: str
    paused: bool


@dataclass(frozen=True)
class Observed:
    """What the target says of a filter: which revision, since which offsets, or why not."""

    filter: str
    state: State
    revision: str = ""
    deployment: str = ""
    reason: str = ""
    cutover: Mapping[str, int] = field(default_factory=dict[str, int])
    statement_ids: tuple[str, ...] = ()
    at: datetime | None = None


class DeploymentTarget(Protocol):
    """A place where filters run. Every call may be repeated; none leaves a half-done deployment.

    `deploy` answers when the target has taken the order, not when it is carried out: `observe`
    tells. What it had begun when it failed is undone before it raises. The same deployment again
    with another `paused` pauses or resumes it.
    """

    @property
    def name(self) -> str: ...

    def deploy(self, wanted: Deployment) -> tuple[str, ...]: ...

    def observe(self, wanted: Deployment) -> Observed: ...

    def remove(self, wanted: Deployment) -> None: ...

    def held(self) -> Mapping[str, Held] | None:
        """All that it was told, by filter; None when it cannot be asked for that: then ask of each."""
        ...


ENGINE = "engine"


def deployment_of(control: ControlStore, record: FilterRecord) -> Deployment | None:
    """What shall run of this filter; None when nothing shall."""
    if record.wanted_deployment is None or record.wanted_version is None:
        return None
    declared = _declared(control, record.id, record.wanted_version)
    return Deployment(
        filter=record.id,
        source=declared.source,
        revision=_revision(control, record.id, record.wanted_version),
        content=canonical(declared),
        topic=declared.output_topic,
        deployment=record.wanted_deployment,
        backfill=declared.backfill,
        paused=record.paused,
        statements=_statements(declared, record.target),
        since=record.since if record.since and record.since.topic == declared.source else None,
    )


def removals_of(control: ControlStore, operation: Operation) -> tuple[Deployment, ...]:
    """What is to be taken away: only names matter. The one that the operation speaks of comes first.

    Our engine knows filters by their ids; others by topics, and older versions may have had others.
    """
    numbers = [operation.version]
    if operation.target != ENGINE:
        asked = control.operations(operation.filter_id)
        numbers += [one.version for one in asked if one.target == operation.target]
    found = {
        declared.output_topic: _named(declared)
        for declared in (_declared(control, operation.filter_id, n) for n in dict.fromkeys(numbers))
    }
    return tuple(found.values())


def leftovers(
    control: ControlStore, record: FilterRecord, operation: Operation
) -> tuple[Deployment, ...]:
    """What other versions of the filter may have left at other topics than the wanted one's."""
    numbers = {record.deployed_version, record.version if operation.automatic else None}
    numbers -= {None, record.wanted_version}
    if operation.target == ENGINE or record.wanted_version is None or not numbers:
        return ()
    topic = _declared(control, record.id, record.wanted_version).output_topic
    older = (_declared(control, record.id, number) for number in numbers if number is not None)
    return tuple(_named(one) for one in older if one.output_topic != topic)


def _named(declared: Filter) -> Deployment:
    """Enough of a deployment to take it away."""
    return Deployment(
        filter=declared.id,
        source=declared.source,
        revision="",
        content=canonical(declared),
        topic=declared.output_topic,
        deployment="",
    )


def _declared(control: ControlStore, filter_id: str, number: int) -> Filter:
    version = control.version(filter_id, number)
    assert version is not None, f"{filter_id} has lost its version {number}"
    return parse_filter(dict(version.document))


def _revision(control: ControlStore, filter_id: str, number: int) -> str:
    version = control.version(filter_id, number)
    return version.revision if version else ""


def _statements(declared: Filter, target: str) -> tuple[str, ...]:
    if target == ENGINE:
        return ()
    from headgate.filters.compile.flink import flink_statements

    return flink_statements(declared)


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


def open_targets(settings: Settings, store: OpsStore) -> Mapping[str, DeploymentTarget]:
    """Our engine always; Confluent's Flink once its endpoint is given."""
    targets: dict[str, DeploymentTarget] = {"engine": EngineTarget(store.part(RoutingStore))}
    if settings.confluent_flink_api_endpoint:
        from headgate.filters.targets.confluent import ConfluentTarget, StoredOwnership
        from headgate.filters.targets.confluent_api import Statements, place_of

        owned = StoredOwnership(store.part(ControlStore), ConfluentTarget.name)
        targets[ConfluentTarget.name] = ConfluentTarget(Statements(place_of(settings)), owned)
    return targets
