"""Requests and responses of the filter routes: one set of models for server, client and OpenAPI document."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import Field

from headgate.core.identity.audit import AuditEntry
from headgate.filters.control.lifecycle import allowed
from headgate.filters.control.model import DeploymentStatus, Difference, Generated
from headgate.filters.git.repository import Drift
from headgate.filters.git.sync import Mended, Side
from headgate.filters.spec import MOST_NAME, NAME
from headgate.filters.store.model import (
    Approval,
    Decision,
    FilterRecord,
    FilterVersion,
    Operation,
    OperationKind,
    OperationState,
    Routed,
    Status,
)
from headgate.web.models import Answered, Asked, ProblemFault

MOST_WORDS = 2_000
# No NUL: PostgreSQL has no place for it.
Words = Annotated[str, Field(max_length=MOST_WORDS, pattern=r"^[^\x00]*$")]
Revision = Annotated[
    str, Field(pattern=r"^[0-9a-f]{64}$", description="The SHA-256 of the content.")
]


class FilterOut(Answered):
    """A filter: its document, then how it stands."""

    id: str
    name: str
    description: str
    consumer_id: str
    output_topic: str
    conditions: list[dict[str, Any]]
    condition_logic: str
    enabled: bool
    ops: list[str]
    backfill: str
    source: str
    status: Status
    version: int
    revision: str
    author: str
    created_at: datetime
    updated_at: datetime
    written_at: datetime | None
    approved_by: str | None
    approved_at: datetime | None
    deployed_at: datetime | None
    deployed_version: int | None
    deployed_revision: str | None
    deployment_error: str | None
    flink_statement_ids: list[str]
    paused: bool
    target: str
    etag: str = Field(description="What a change of it must name in If-Match.")
    allowed: list[str] = Field(description="What can be done to it now.")

    @classmethod
    def of(cls, record: FilterRecord) -> Self:
        return cls.model_validate(
            {
                **record.document,
                **{name: getattr(record, name) for name in _OF_RECORD},
                "flinkStatementIds": list(record.statement_ids),
                "allowed": list(allowed(record)),
            }
        )


_OF_RECORD = (
    "id status version revision author created_at updated_at written_at approved_by approved_at deployed_at "
    "deployed_version deployed_revision deployment_error paused target etag"
).split()


class FilterList(Answered):
    """One page; `next` is the cursor of the following one."""

    filters: list[FilterOut]
    total: int
    next: str | None = None


class GeneratedOut(Answered):
    filter_id: str
    revision: str
    sql: str
    statements: list[str]
    valid: bool
    validation_errors: list[str]
    target: str = "engine"

    @classmethod
    def of(cls, made: Generated) -> Self:
        return cls.model_validate(vars(made))


class ValidateIn(Asked):
    """SQL that is sent along must be what we generate."""

    sql: Annotated[str, Field(max_length=500_000)] | None = None


class ValidationOut(Answered):
    valid: bool
    errors: list[str] = Field(default=[])
    warnings: list[str] = Field(default=[])


class DocumentValidationOut(Answered):
    """What is wrong with a document, or what it would become."""

    valid: bool
    errors: list[ProblemFault] = Field(default=[])
    warnings: list[str] = Field(default=[])
    revision: str | None = None
    sql: str | None = None
    statements: list[str] = Field(default=[])


class ApproveIn(Asked):
    """The revision that was looked at: another one is not approved."""

    revision: Revision
    comment: Words = ""


class RejectIn(Asked):
    reason: Annotated[Words, Field(min_length=1)]


TARGET = r"^[a-z]{1,30}$"


class DeployIn(Asked):
    target: Annotated[str, Field(pattern=TARGET)] = "engine"


class RollbackIn(Asked):
    """Without a version: to the one that was live before.

    `runningVersion` is the one that is expected to run now: a second rollback is refused for it.
    """

    to_version: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    running_version: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None


class OperationOut(Answered):
    """Something that a target is asked to do."""

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
    ended_at: datetime | None
    error: str | None
    flink_statement_ids: list[str]
    automatic: bool

    @classmethod
    def of(cls, operation: Operation) -> Self:
        return cls.model_validate(
            {**vars(operation), "flinkStatementIds": list(operation.statement_ids)}
        )


class OperationList(Answered):
    operations: list[OperationOut]


class DeploymentOut(Answered):
    """What became of a change that touches a target, so far."""

    filter_id: str
    status: Status
    flink_statement_ids: list[str]
    message: str
    error: str | None
    operation: OperationOut

    @classmethod
    def of(cls, operation: Operation, record: FilterRecord) -> Self:
        ids = operation.statement_ids or record.statement_ids
        return cls(
            filter_id=record.id,
            status=record.status,
            flink_statement_ids=list(ids),
            message=_message(operation),
            error=operation.error,
            operation=OperationOut.of(operation),
        )


def _message(operation: Operation) -> str:
    of_version = f"{operation.kind} of version {operation.version}"
    return {
        OperationState.RUNNING: f"{of_version} is under way",
        OperationState.SUCCEEDED: f"{of_version} is done",
        OperationState.FAILED: f"{of_version} failed",
        OperationState.SUPERSEDED: f"{of_version} gave way to a later operation",
    }[operation.state]


class DesiredOut(Answered):
    revision: str
    deployment: str
    topic: str
    paused: bool


class ObservedOut(Answered):
    state: str
    revision: str
    deployment: str
    reason: str
    cutover: dict[str, int]
    at: datetime | None


class StatusOut(Answered):
    """What is desired and what is observed, side by side."""

    filter_id: str
    status: Status
    flink_statement_ids: list[str]
    deployed_at: datetime | None
    deployment_error: str | None
    last_checked: datetime
    desired: DesiredOut | None
    observed: ObservedOut | None
    cutover: dict[str, int]
    reason: str
    waiting_commits: int
    git_trouble: str

    @classmethod
    def of(cls, found: DeploymentStatus) -> Self:
        return cls.model_validate(
            {
                **vars(found),
                "flinkStatementIds": list(found.statement_ids),
                "desired": found.desired and vars(found.desired),
                "observed": found.observed and vars(found.observed),
                "cutover": dict(found.cutover),
            }
        )


class DecisionOut(Answered):
    """What somebody decided on a version; `void` says what ended it."""

    decision: Decision
    by: str
    at: datetime
    comment: str
    void: str
    targets: list[str]


class RevisionOut(Answered):
    """One version; the decisions on a rollback are those on the version that it restores."""

    version: int
    revision: str
    author: str
    authors: list[str]
    written_at: datetime
    sql_hash: str
    note: str
    restores: int | None
    document: dict[str, Any]
    decisions: list[DecisionOut]

    @classmethod
    def of(cls, version: FilterVersion, approvals: Sequence[Approval]) -> Self:
        numbers = (version.version, version.written)
        decisions = [
            {**vars(one), "targets": sorted(one.bounds)}
            for one in approvals
            if one.version in numbers
        ]
        document = dict(version.document)
        return cls.model_validate({**vars(version), "document": document, "decisions": decisions})


class RevisionList(Answered):
    revisions: list[RevisionOut]


class DiffOut(Answered):
    filter_id: str
    before: int
    after: int
    fields: list[str]
    text: str

    @classmethod
    def of(cls, difference: Difference) -> Self:
        return cls.model_validate(vars(difference))


class AuditOut(Answered):
    """An entry of the audit log; `hash` covers it and all before it."""

    seq: int
    at: datetime
    actor: str
    action: str
    subject: str
    detail: dict[str, Any]
    previous: str
    hash: str

    @classmethod
    def of(cls, entry: AuditEntry) -> Self:
        return cls.model_validate({**vars(entry), "detail": dict(entry.detail)})


class AuditList(Answered):
    entries: list[AuditOut]
    next: int | None = None


class Happened(Answered):
    """One event of the stream: what was done to which filter, and by whom."""

    seq: int
    at: datetime
    actor: str
    action: str
    subject: str

    @classmethod
    def of(cls, entry: AuditEntry) -> Self:
        return cls.model_validate(vars(entry))


class FieldOut(Answered):
    """A field that conditions can ask about."""

    name: str
    type: str
    nested: bool
    operators: list[str]


class FieldList(Answered):
    fields: list[FieldOut]
    value_types: list[str]


class DriftOut(Answered):
    filter_id: str
    kind: str
    words: str
    commit: str | None

    @classmethod
    def of(cls, drift: Drift) -> Self:
        return cls(
            filter_id=drift.filter,
            kind=drift.kind.value,
            words=drift.words,
            commit=drift.commit.id if drift.commit else None,
        )


class DriftList(Answered):
    drift: list[DriftOut]


class LedgerRange(Answered):
    """Offsets of one partition that one revision judged, in consecutive batches of one job."""

    job: str
    revision: str
    source: str
    partition: str
    start: int
    end: int
    batches: int


class LedgerSum(Answered):
    revision: str
    n: int
    refused: int


class LedgerOut(Answered):
    """Which revision judged which offsets, and how many records each sent on."""

    filter_id: str
    ranges: list[LedgerRange]
    sums: list[LedgerSum]
    sent: int
    refused: int

    @classmethod
    def of(cls, routed: Routed) -> Self:
        return cls(
            filter_id=routed.filter,
            ranges=[LedgerRange.model_validate(vars(one)) for one in routed.ranges],
            sums=[LedgerSum.model_validate(vars(one)) for one in routed.sums],
            sent=routed.n,
            refused=routed.refused,
        )


FilterName = Annotated[str, Field(pattern=f"^{NAME}$", max_length=MOST_NAME)]


class MendIn(Asked):
    """`git`: it gets what was accepted here. `store`: git's documents are submitted for approval."""

    side: Side
    filters: Annotated[tuple[FilterName, ...], Field(max_length=1000)] = ()


class NotMendedOut(Answered):
    """A filter that could not be mended, and why; the others were."""

    filter_id: str
    why: str


class MendOut(Answered):
    """What was mended, what could not be, and what still differs."""

    filters: list[str]
    commits: list[str]
    refused: list[NotMendedOut]
    left: list[DriftOut]

    @classmethod
    def of(cls, mended: Mended) -> MendOut:
        left = [DriftOut.of(one) for one in mended.left]
        refused = [NotMendedOut(filter_id=one.filter, why=one.why) for one in mended.refused]
        filters, commits = list(mended.filters), list(mended.commits)
        return cls(filters=filters, commits=commits, refused=refused, left=left)
