"""Where a filter can be deployed to: the interface, what is handed to it and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple, Protocol

from headgate.filters.store.routing_model import TopicEnd


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
