"""Results of the control plane: generated SQL, validation, deployment status, difference, dry run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from headgate.filters.store.model import Status
from headgate.filters.targets.deployment import Deployment, Observed


@dataclass(frozen=True)
class Generated:
    """The SQL of a filter as `target` is sent it; `statements` are the sink and the insert."""

    filter_id: str
    revision: str
    sql: str
    statements: tuple[str, ...]
    valid: bool
    validation_errors: tuple[str, ...] = ()
    target: str = "engine"


@dataclass(frozen=True)
class Validation:
    valid: bool
    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class DeploymentStatus:
    """Desired and observed state of one filter, side by side."""

    filter_id: str
    status: Status
    statement_ids: tuple[str, ...]
    deployed_at: datetime | None
    deployment_error: str | None
    last_checked: datetime
    desired: Deployment | None
    observed: Observed | None
    cutover: Mapping[str, int]
    reason: str
    # Accepted versions that are not in git yet, and why the first of them is not.
    waiting_commits: int = 0
    git_trouble: str = ""


@dataclass(frozen=True)
class Difference:
    """Two versions of a filter: their texts' unified difference and the fields that changed."""

    filter_id: str
    before: int
    after: int
    fields: tuple[str, ...]
    text: str


@dataclass(frozen=True)
class Sample:
    """An event that a change concerns, masked: `filters/preview.py` says what is shown of it."""

    partition: int
    offset: int
    at: datetime | None
    columns: Mapping[str, str | int | None]
    header_data: Mapping[str, object] | None


@dataclass(frozen=True)
class Concern:
    """A consumer who reads a topic that the change writes to, or no longer writes to."""

    consumer: str
    topic: str
    filters: tuple[str, ...]
    added: int = 0
    removed: int = 0


@dataclass(frozen=True)
class Remark:
    """What is certain without any event: never, always, no_effect, equal, contained, contains."""

    kind: str
    other: str | None
    words: str


@dataclass(frozen=True)
class Preview:
    """What a revision would have matched of the last events, beside what runs now.

    `read` says which offsets were looked at, by partition: from (inclusive) to (exclusive).
    `unread` is empty, or says why no event could be looked at.
    """

    filter_id: str
    revision: str
    deployed_revision: str | None
    source: str
    events: int
    refused: int
    tombstones: int
    matched: int
    matched_before: int
    added: int
    removed: int
    kept: int
    samples_added: tuple[Sample, ...]
    samples_removed: tuple[Sample, ...]
    remarks: tuple[Remark, ...]
    consumers: tuple[Concern, ...]
    read: Mapping[str, tuple[int, int]]
    seconds: float
    unread: str = ""
