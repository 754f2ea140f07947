"""Values about filters in the ops store: desired and observed routing, records, versions, approvals, operations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from headgate.core.ledger.model import canonical, fingerprint

if TYPE_CHECKING:
    from headgate.core.identity.audit import AuditEntry


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


class Status(StrEnum):
    """How the newest version of a filter stands; `control/lifecycle.py` says what may follow."""

    PENDING_APPROVAL = "pending_approval"
    APPROVED = "approved"
    DEPLOYING = "deploying"
    DEPLOYED = "deployed"
    FAILED = "failed"
    DISABLED = "disabled"
    REJECTED = "rejected"
    PENDING_DELETION = "pending_deletion"
    DELETED = "deleted"


@dataclass(frozen=True)
class FilterRecord:
    """A filter as it stands: its newest version, and what of it runs.

    `since` is where the source ended when the filter was deployed: `backfill: none` begins there.

    `deployed_*` is what runs now, `wanted_*` what shall run; they differ while an operation is under
    way. `document` is the content of the newest version, without fields of status.
    """

    id: str
    version: int
    revision: str
    status: Status
    document: Mapping[str, Any]
    author: str
    created_at: datetime
    updated_at: datetime
    approved_by: str | None = None
    approved_at: datetime | None = None
    deployed_at: datetime | None = None
    deployed_version: int | None = None
    deployed_revision: str | None = None
    deployment_error: str | None = None
    paused: bool = False
    target: str = "engine"
    statement_ids: tuple[str, ...] = ()
    wanted_version: int | None = None
    wanted_deployment: str | None = None
    accepted_version: int | None = None
    former_status: Status | None = None
    asked_by: str | None = None
    written_at: datetime | None = None
    since: TopicEnd | None = None

    @property
    def etag(self) -> str:
        """Differs whenever anything of the record does."""
        return record_etag(self)

    @property
    def runs(self) -> bool:
        """Whether some version of it is, or shall be, at its target."""
        return self.wanted_deployment is not None


def record_etag(record: FilterRecord) -> str:
    # The revision stands for the document, whose numbers may be greater than JSON's readers take.
    values = {name: value for name, value in vars(record).items() if name != "document"}
    return fingerprint(canonical({name: _stamp(value) for name, value in values.items()}))[:32]


def _stamp(value: object) -> object:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds")
    return vars(value) if isinstance(value, TopicEnd) else value


@dataclass(frozen=True)
class FilterVersion:
    """One accepted or proposed content of a filter.

    `authors` are all who wrote it since the last approval: none of them may approve it. `sql_hash`
    is of the SQL that it compiled to when it was written. A rollback `restores` an earlier version:
    the one that people wrote and approved, never another rollback.
    """

    filter_id: str
    version: int
    revision: str
    document: Mapping[str, Any]
    author: str
    authors: tuple[str, ...]
    written_at: datetime
    sql_hash: str
    note: str = ""
    restores: int | None = None

    @property
    def seal_key(self) -> str:
        return f"version:{self.filter_id}:{self.version}"

    def is_mentioned_in(self, entries: Iterable[AuditEntry]) -> bool:
        return any(_is_about(entry, self) for entry in entries)

    @property
    def written(self) -> int:
        """The version in which people wrote and approved this content."""
        return self.restores or self.version


@dataclass(frozen=True)
class LiveVersion:
    """That a version went live; `withdrawn` names who rolled back from it, if anybody did."""

    filter_id: str
    version: int
    at: datetime
    withdrawn: str = ""


class Decision(StrEnum):
    APPROVED = "approved"
    REJECTED = "rejected"


@dataclass(frozen=True)
class Approval:
    """A second person's decision on one version.

    `bounds` has, by deployment target, the hash of the revision and of the text that the target is
    sent: where that is another text, or a target that the approver was not shown, it does not hold.
    """

    id: str
    filter_id: str
    version: int
    bounds: Mapping[str, str]
    decision: Decision
    by: str
    comment: str
    at: datetime
    expires_at: datetime
    void: str = ""

    @property
    def seal_key(self) -> str:
        return f"approval:{self.id}"

    def is_mentioned_in(self, entries: Iterable[AuditEntry]) -> bool:
        decisions = (one for one in entries if one.action.startswith(("approve", "reject")))
        return any(one.actor == self.by and _is_about(one, self) for one in decisions)

    def covers(self, bounds: Mapping[str, str]) -> bool:
        """Whether it was given for one of these texts at least, by target."""
        approved = self.decision is Decision.APPROVED
        return approved and any(self.bounds.get(target) == hash for target, hash in bounds.items())

    def holds(self, now: datetime) -> bool:
        """Whether nothing has ended it yet."""
        return not self.void and now < self.expires_at


def _is_about(entry: AuditEntry, row: FilterVersion | Approval) -> bool:
    return entry.subject == row.filter_id and entry.detail.get("version") == row.version


class OperationKind(StrEnum):
    DEPLOY = "deploy"
    ROLLBACK = "rollback"
    PAUSE = "pause"
    RESUME = "resume"
    DISABLE = "disable"
    DELETE = "delete"


class OperationState(StrEnum):
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    SUPERSEDED = "superseded"

    @property
    def ended(self) -> bool:
        return self is not OperationState.RUNNING


@dataclass(frozen=True)
class Operation:
    """Something that touches a target: asked for at once, carried out by the reconciler."""

    id: str
    kind: OperationKind
    filter_id: str
    version: int
    revision: str
    target: str
    state: OperationState
    by: str
    at: datetime
    deadline: datetime
    ended_at: datetime | None = None
    error: str | None = None
    statement_ids: tuple[str, ...] = ()
    automatic: bool = False
    paused_before: bool = False


@dataclass(frozen=True)
class Accepted:
    """The content of a filter that must stand in git."""

    filter_id: str
    version: int
    revision: str
    content: Mapping[str, Any]
    author: str


@dataclass(frozen=True)
class GitErrand:
    """A commit that is still to be made, or was made as `commit`. No text: the file is removed."""

    id: int
    filter_id: str
    text: str | None
    author: str
    message: str
    at: datetime
    commit: str | None = None
    trouble: str = ""


@dataclass(frozen=True)
class Page:
    """Some filters, and where the next page begins (None: this was the last)."""

    filters: tuple[FilterRecord, ...]
    total: int
    after: str | None = None
