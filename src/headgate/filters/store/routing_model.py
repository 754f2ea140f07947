"""What the router is asked to do and what it does: filters by name, between the control plane and the engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


class Standing(StrEnum):
    """How a filter stands in the router, as last seen there."""

    LIVE = "live"
    AHEAD = "ahead"  # taken up, and live once the router has come to where it begins
    PAUSED = "paused"
    SUSPENDED = (
        "suspended"  # it raised, or its topic cannot be written: the others go on without it
    )
    FAILED = "failed"  # it could not be taken up: never judged a record
    OFF = "off"


@dataclass(frozen=True)
class TopicEnd:
    """Where a topic ended at some moment: by partition, the offset that the next record gets.

    `topic_id` tells a topic that was made again from the old one, whose offsets say nothing of it.
    """

    topic: str
    topic_id: str
    offsets: Mapping[str, int]


@dataclass(frozen=True)
class Wanted:
    """A filter that is to be routed: exactly this revision, since this deployment.

    `content` is the canonical text of the document; a paused one keeps its place and gets nothing.
    `since` is where its source ended when it was deployed, if that was known.
    """

    filter: str
    source: str
    revision: str
    content: str
    topic: str
    deployment: str
    paused: bool = False
    backfill: str = "none"
    since: TopicEnd | None = None


@dataclass(frozen=True)
class Seen:
    """How a filter stands: which revision judges since which offsets of the source topic.

    `cutover` is the first offset of each partition that it judges, or, once it judges none, the first
    one that it did not. `source_id` tells a topic that was made again from the old one.
    """

    filter: str
    source: str
    revision: str
    deployment: str
    standing: Standing
    set_id: str
    cutover: Mapping[str, int] = field(default_factory=dict[str, int])
    reason: str = ""
    at: datetime | None = None
    source_id: str = ""


@dataclass(frozen=True)
class RoutedCount:
    """How many records of one batch a filter's revision sent on, and how many it had to refuse."""

    filter: str
    revision: str
    n: int
    refused: int = 0


@dataclass(frozen=True)
class Member:
    """One filter of a set that judges a batch."""

    filter: str
    revision: str
    topic: str


@dataclass(frozen=True)
class Boundary:
    """Between which batches a router is: how far it has settled this topic, with no batch under way."""

    job: str
    source_id: str
    reached: Mapping[str, int]


@dataclass(frozen=True)
class RoutedBatch:
    """What a batch of the router says beside its outcomes: by which set, and counts that are not 0."""

    set_id: str
    counts: tuple[RoutedCount, ...] = ()


@dataclass(frozen=True)
class RoutedRange:
    """Offsets of one partition that a revision of a filter has judged, without a break."""

    job: str
    revision: str
    source: str
    source_id: str
    partition: str
    start: int
    end: int
    batches: int = 1


@dataclass(frozen=True)
class RoutedSum:
    """How many records a revision of a filter sent on in all batches of a job, and refused."""

    job: str
    revision: str
    n: int
    refused: int


@dataclass(frozen=True)
class RevisionCount:
    """How many records a revision of a filter judged, sent on and refused, in all batches of all jobs."""

    revision: str
    judged: int
    sent: int
    refused: int


@dataclass(frozen=True)
class Routed:
    """All that a filter has ever judged."""

    filter: str
    ranges: tuple[RoutedRange, ...] = ()
    sums: tuple[RoutedSum, ...] = ()

    @property
    def n(self) -> int:
        return sum(own.n for own in self.sums)

    @property
    def refused(self) -> int:
        return sum(own.refused for own in self.sums)


class Owing(StrEnum):
    """Whether offsets that a filter is to judge beside the live ones have been judged."""

    WAITING = "waiting"
    DONE = "done"
    FAILED = "failed"  # they wait for a person: a new deployment of the filter lets them go on
    GIVEN_UP = "given up"  # the filter was taken away before they were judged


@dataclass(frozen=True)
class Owed:
    """Offsets before a filter's cutover that the replay job is to judge with it."""

    id: int | None
    filter: str
    source: str
    source_id: str
    start: Mapping[str, int]
    end: Mapping[str, int]
    state: Owing = Owing.WAITING
    reason: str = ""
    at: datetime | None = None
