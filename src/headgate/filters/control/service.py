"""The service behind the API of filters: checks the role, then one transaction with its audit entry for each change.

Nothing here touches a target or git: the reconciler does, from what is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Protocol, TypeVar

from headgate.core.identity.audit import AuditEntry
from headgate.core.identity.roles import Identity, require
from headgate.core.ledger.ops_store import OpsStore
from headgate.declarations.names import NO_TOPICS, SOURCE, ReservedTopics
from headgate.errors import ConflictError, DeclarationError, Fault, ForbiddenError, NotFoundError
from headgate.filters.control import approvals
from headgate.filters.control import commands as ordering
from headgate.filters.control import edit as submitting
from headgate.filters.control import queries as reading
from headgate.filters.control.model import (
    DeploymentStatus,
    Difference,
    Generated,
    Preview,
    Validation,
)
from headgate.filters.control.operations import ControlFaults, Point
from headgate.filters.control.queries import check_topics
from headgate.filters.control.revisions import difference, drafted, found
from headgate.filters.git.store import GitStore
from headgate.filters.loader import parse_filter
from headgate.filters.preview import (
    LAST,
    SAMPLES,
    Recent,
    preview,
    refuse_masked_conditions,
    refuse_unknown_source,
)
from headgate.filters.spec import Filter
from headgate.filters.store.control import Change, ControlStore
from headgate.filters.store.model import (
    Approval,
    FilterRecord,
    FilterVersion,
    Operation,
    OperationState,
    Page,
    Status,
    TopicEnd,
)
from headgate.filters.targets.deployment import ENGINE, DeploymentTarget, State

LONGEST_TEXT = 2000


def plain(text: str, field: str = "/comment") -> str:
    """The text; DeclarationError when it is too long or has characters that nobody can read."""
    odd = any(not (char.isprintable() or char in "\n\t") for char in text)
    if odd or len(text) > LONGEST_TEXT:
        what = (
            "has characters that cannot be shown"
            if odd
            else f"is longer than {LONGEST_TEXT} characters"
        )
        raise DeclarationError([Fault("", None, field, f"it {what}", "write it in plain words")])
    return text


DEADLINE = timedelta(seconds=30)
APPROVAL = timedelta(hours=72)
MOST = 1000
LAST_ENTRY = 2**62
REFUSED = "approve_refused"
Made = TypeVar("Made", FilterRecord, Operation)


class Keep(Protocol):
    """Keeps what came of a change in the change's own transaction, and hands it on."""

    def __call__(self, change: Change, made: Made, /) -> Made: ...


def _keep_nothing(change: Change, made: Made, /) -> Made:
    return made


class FilterService:
    """The control plane's front door for the API, the command line and tests."""

    def __init__(
        self,
        store: OpsStore,
        git: GitStore | None,
        targets: Mapping[str, DeploymentTarget],
        clock: Callable[[], datetime] | None = None,
        *,
        approval_valid: timedelta = APPROVAL,
        deadline: timedelta = DEADLINE,
        faults: ControlFaults | None = None,
        recent: Recent | None = None,
        source: str = SOURCE,
        reserved: ReservedTopics = NO_TOPICS,
    ) -> None:
        """`source`: the topic of changes that a dry run may read before any filter names it."""
        self._recent, self._source = recent, source
        self._reserved = reserved
        self.store, self.git, self.targets = store, git, targets
        self._control = store.part(ControlStore)
        self._clock = clock or self._control.now
        self._valid, self._deadline = approval_valid, deadline
        self._faults = faults or ControlFaults.from_environment()

    # Write. `keep` is called inside the transaction of a change, with what came of it.

    def create(
        self,
        by: Identity,
        document: Filter | object,
        also: Collection[str] = (),
        keep: Keep = _keep_nothing,
    ) -> FilterRecord:
        """A new filter; `also` wrote on it, and may approve it as little as `by`."""
        require(by, "createFilter")
        draft = drafted(document, also)
        with self._control.change() as change:
            self._refuse_topics(change.filters(), draft.declared)
            return keep(change, submitting.create(change, by.name, draft))

    def update(
        self,
        by: Identity,
        id: str,
        document: Filter | object,
        if_match: str | None = None,
        also: Collection[str] = (),
    ) -> FilterRecord:
        """The next version, waiting for approval; the document's id must be this one."""
        require(by, "updateFilter")
        draft = reading.of_same_id(drafted(document, also), id)
        with self._control.change() as change:
            record = found(change.filter(id), id)
            # To stop what runs is the right of those who may pause it, to write is the authors'.
            turns_off = submitting.turns_off(record, draft)
            require(by, "pauseFilter" if turns_off else "createFilter")
            if not turns_off:
                self._refuse_topics(change.filters(), draft.declared)
            return submitting.update(change, record, by.name, draft, if_match, self._deadline)

    def set_enabled(
        self, by: Identity, id: str, enabled: bool, if_match: str | None = None
    ) -> FilterRecord:
        """Off at once; on as a new version that waits for approval."""
        record = self.get(id)
        version = self._control.version(id, record.wanted_version or record.version)
        document = record.document if enabled or version is None else version.document
        return self.update(by, id, {**document, "enabled": enabled}, if_match)

    def delete(self, by: Identity, id: str, if_match: str | None = None) -> FilterRecord:
        """`deleted` at once, or `pending_deletion` when it runs, or did lately: two people decide."""
        require(by, "deleteFilter")
        with self._control.change() as change:
            record = found(change.filter(id), id)
            return submitting.delete(change, record, by.name, if_match, self._valid)

    # Decide

    def approve(
        self, by: Identity, id: str, revision: str, comment: str = "", keep: Keep = _keep_nothing
    ) -> FilterRecord:
        """Yes to this revision, as it is shown for the targets that there are."""
        require(by, "approveFilter")
        with self._refusals_audited(by, id, revision), self._control.change() as change:
            record = found(change.filter(id), id)
            yes = approvals.Word(
                by.name, revision, plain(comment), self._valid, tuple(self.targets)
            )
            after = keep(change, approvals.approve(change, record, yes, self._deadline))
            self._faults.at(Point.BEFORE_APPROVAL)
        self._faults.at(Point.AFTER_APPROVAL)
        return after

    @contextmanager
    def _refusals_audited(self, by: Identity, id: str, revision: str) -> Generator[None]:
        """Whoever tries to approve what they wrote leaves an entry: one for each revision."""
        try:
            yield
        except ForbiddenError as error:
            detail = {"revision": plain(revision)[:64], "peer": by.peer, "reason": error.what}
            with self._control.change() as change:
                if not change.was_audited(by.name, REFUSED, id, detail):
                    change.audit(by.name, REFUSED, id, **detail)
            raise

    def reject(
        self, by: Identity, id: str, reason: str, keep: Keep = _keep_nothing
    ) -> FilterRecord:
        require(by, "rejectFilter")
        with self._control.change() as change:
            record = found(change.filter(id), id)
            return keep(change, approvals.reject(change, record, by.name, plain(reason)))

    # Order

    def deploy(
        self, by: Identity, id: str, target: str = ENGINE, keep: Keep = _keep_nothing
    ) -> Operation:
        require(by, "deployFilter")
        self._refuse_unknown_target(target)
        since = self._end_of_source(id, target)
        with self._control.change() as change:
            record = found(change.filter(id), id)
            self._refuse_topics(change.filters(), parse_filter(dict(record.document)))
            operation = ordering.deploy(change, record, by.name, target, self._deadline, since)
            operation = keep(change, operation)
            self._faults.at(Point.BEFORE_ORDER)
        self._faults.at(Point.AFTER_ORDER)
        return operation

    def _end_of_source(self, id: str, target: str) -> TopicEnd | None:
        """Where the source ends now; asked for before the transaction, which must not wait for it."""
        declared = parse_filter(dict(self.get(id).document))
        if self._recent is None or target != ENGINE or declared.backfill != "none":
            return None
        return self._recent.end(declared.source)

    def rollback(
        self,
        by: Identity,
        id: str,
        to_version: int | None = None,
        running: int | None = None,
        keep: Keep = _keep_nothing,
    ) -> Operation:
        """Back to a version that was live; StaleError when another one runs than `running`."""
        require(by, "rollbackFilter")
        with self._control.change() as change:
            record = found(change.filter(id), id)
            operation = ordering.rollback(
                change, record, by.name, to_version, self._deadline, running
            )
            return keep(change, operation)

    def pause(self, by: Identity, id: str, keep: Keep = _keep_nothing) -> Operation:
        require(by, "pauseFilter")
        with self._control.change() as change:
            record = found(change.filter(id), id)
            return keep(change, ordering.pause(change, record, by.name, self._deadline))

    def resume(self, by: Identity, id: str, keep: Keep = _keep_nothing) -> Operation:
        require(by, "resumeFilter")
        observed = self.status(id).observed
        suspended = observed is not None and observed.state is State.FAILED
        with self._control.change() as change:
            record = found(change.filter(id), id)
            operation = ordering.resume(
                change, record, by.name, self._deadline, suspended=suspended
            )
            return keep(change, operation)

    # Read

    def get(self, id: str) -> FilterRecord:
        return found(self._control.filter(id), id)

    def list(
        self,
        status: Status | str | Collection[str] | None = None,
        consumer: str | None = None,
        q: str | None = None,
        after: str | None = None,
        limit: int = 50,
    ) -> Page:
        """Filters by id; deleted ones only when their status is asked for."""
        asked = (status,) if isinstance(status, str) else status or ()
        statuses = [reading.status_named(one) for one in asked]
        return self._control.page(statuses, consumer, q, after, min(max(limit, 1), MOST))

    def generate(self, id: str, target: str | None = None) -> Generated:
        """The text that this target is sent; without one: where the filter runs, else the engine."""
        if target is not None:
            self._refuse_unknown_target(target)
        return reading.generated(self.get(id), self.targets, target)

    def validate(self, id: str, sql: str | None = None) -> Validation:
        """The stored revision; SQL text sent along must equal what is generated."""
        record = self.get(id)
        result = reading.validated(record, self.targets, sql)
        return self._with_topics(parse_filter(dict(record.document)), result)

    def check_document(self, declared: Filter) -> Validation:
        """What a document that compiles would meet here: its topics, and the targets that there are."""
        warnings = reading.differences(declared, self.targets)
        return self._with_topics(declared, Validation(valid=True, warnings=warnings))

    def _with_topics(self, declared: Filter, result: Validation) -> Validation:
        others = [one for one in self._control.filters() if one.id != declared.id]
        checked = check_topics(declared, others, self._reserved)
        return replace(
            result,
            valid=result.valid and not checked.errors,
            errors=(*result.errors, *checked.errors),
            warnings=(*result.warnings, *checked.warnings),
        )

    def _refuse_topics(self, records: Iterable[FilterRecord], declared: Filter) -> None:
        """ConflictError for a topic that the filter must not read or write."""
        others = [one for one in records if one.id != declared.id]
        if errors := check_topics(declared, others, self._reserved).errors:
            raise ConflictError(
                f"{declared.id} cannot have these topics",
                why="\n".join(errors),
                fix="choose another outputTopic or source",
            )

    def _refuse_unknown_target(self, target: str) -> None:
        if target not in self.targets:
            raise NotFoundError(
                f"there is no target {plain(target)}", why=f"there are {', '.join(self.targets)}"
            )

    def preview(
        self,
        by: Identity,
        subject: Filter | Mapping[str, object] | str,
        last: int = LAST,
        samples: int = SAMPLES,
    ) -> Preview:
        """What a document, or a stored filter by its id, would have matched of the last events.

        A document of the caller's own may ask about a masked field only where the caller may see
        unmasked values: its counts tell them. What is stored was written under its author's name.
        """
        stored = self.get(subject).document if isinstance(subject, str) else subject
        declared = stored if isinstance(stored, Filter) else parse_filter(dict(stored))
        if not isinstance(subject, str):
            refuse_masked_conditions(by, declared)
            refuse_unknown_source(declared, {self._source, *self._control.sources()})
        question = reading.question(self._control, declared)
        return preview(question, self._recent, last, samples)

    def revisions(self, id: str) -> tuple[FilterVersion, ...]:
        """All versions of a filter, also of a deleted one, the oldest first."""
        versions = self._control.versions(id)
        if not versions:
            raise NotFoundError(f"there is no filter {id}")
        return versions

    def approvals(self, id: str) -> tuple[Approval, ...]:
        """What people decided on the versions of a filter, the oldest first."""
        return self._control.approvals(id)

    def diff(self, id: str, a: int, b: int) -> Difference:
        known = {version.version: version for version in self.revisions(id)}
        for number in (a, b):
            if number not in known:
                raise NotFoundError(f"{id} has no version {number}")
        return difference(known[a], known[b])

    def status(self, id: str) -> DeploymentStatus:
        return reading.status(self._control, self.get(id), self.targets, self._clock())

    def operation(self, id: str) -> Operation:
        operation = self._control.operation(id)
        if operation is None:
            raise NotFoundError(f"there is no operation {id}")
        return operation

    def operations(
        self,
        filter_id: str | None = None,
        states: Collection[OperationState] = (),
        limit: int = 100,
    ) -> tuple[Operation, ...]:
        return self._control.operations(filter_id, states, min(max(limit, 1), MOST))

    def audit(self, after: int = 0, limit: int = 100) -> tuple[AuditEntry, ...]:
        return self._control.audit(min(after, LAST_ENTRY), min(max(limit, 1), MOST))

    def events(self, after_seq: int = 0, limit: int = 100) -> tuple[AuditEntry, ...]:
        """What happened after this entry, for those who follow along."""
        return self.audit(after_seq, limit)
