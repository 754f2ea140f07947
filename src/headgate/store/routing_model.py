"""What the router is asked to do and what it does: filters by name, between the control plane and the engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


class Standing(StrEnum):
    """How a filter stands in the router, as last seen there."""

    LIVE = "live"
    PAUSED = "paused"
    SUSPENDED = "suspended"  # it raised, or its topic cannot be written: the others go on without it
    FAILED = "failed"  # it could not be taken up: never judged a record
    OFF = "off"


@dataclass(frozen=True)
class Wanted:
    """A filter that is to be routed: exactly this revision, since this deployment.

    `content` is the canonical text of the document; a paused one keeps its place and gets nothing.
    """

    filter: str
    source: str
    revision: str
    content: str
    topic: str
    deployment: str
    paused: bool = False
    backfill: str = "none"


@dataclass(frozen=True)
class Seen:
    """How a filter stands: which revision judges since which offsets of the source topic."""

    filter: str
    source: str
    revision: str
    deployment: str
    standing: Standing
    set_id: str
    cutover: Mapping[str, int] = field(default_factory=dict[str, int])
    reason: str = ""
    at: datetime | None = None


@dataclass(frozen=True)
class RoutedCount:
    """How many records of one batch a filter's revision sent on, and how many it had to refuse."""

    filter: str
    revision: str
    n: int
    refused: int = 0
