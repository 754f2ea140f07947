"""What can be asked about filters, by whom, and what comes of it.

Every change is one transaction with its audit entry. Nothing here touches a target or git: the
reconciler does, from what is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta

from headgate.control import approvals, ordering, reading, submitting
from headgate.control.faults import ControlFaults, Point
from headgate.control.git.store import GitStore
from headgate.control.identity.model import Identity
from headgate.control.identity.policy import require
from headgate.control.model import DeploymentStatus, Difference, Generated, Preview, Validation
from headgate.control.preview import (
    LAST,
    SAMPLES,
    preview,
    refuse_masked_conditions,
    refuse_unknown_source,
)
from headgate.control.recent import Recent
from headgate.control.records import found
from headgate.control.revisions import difference, drafted
from headgate.control.targets.model import DeploymentTarget, State
from headgate.control.words import plain
from headgate.errors import ForbiddenError, NotFoundError
from headgate.spec.filter import SOURCE, Filter
from headgate.spec.filter_loader import parse_filter
from headgate.store.control_model import (
    AuditEntry,
    FilterRecord,
    FilterVersion,
    Operation,
    OperationState,
    Page,
    Status,
)
from headgate.store.ops import OpsStore

DEADLINE = timedelta(seconds=30)
APPROVAL = timedelta(hours=72)
MOST = 1000
LAST_ENTRY = 2**62
REFUSED = "approve_refused"


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
    ) -> None:
        """`source`: the topic of changes that a dry run may read before any filter names it."""
        self._recent, self._source = recent, source
        self.store, self.git, self.targets = store, git, targets
        self._control = store.control
        self._clock = clock or store.control.now
        self._valid, self._deadline = approval_valid, deadline
        self._faults = faults or ControlFaults.from_environment()

    # Write

    def create(
        self, by: Identity, document: Filter | object, also: Collection[str] = ()
    ) -> FilterRecord:
        """A new filter; `also` wrote on it, and may approve it as little as `by`."""
        require(by, "createFilter")
        draft = drafted(document, also)
        with self._control.change() as change:
            return submitting.create(change, by.name, draft)

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
            return submitting.update(change, record, by.name, draft, if_match, self._deadline)

    def set_enabled(
        self, by: Identity, id: str, enabled: bool, if_match: str | None = None
    ) -> FilterRecord:
        """Off at once; on as a new version that waits for approval."""
        document = {**self.get(id).document, "enabled": enabled}
        return self.update(by, id, document, if_match)

    def delete(self, by: Identity, id: str, if_match: str | None = None) -> FilterRecord:
        """`deleted` at once, or `pending_deletion` when it runs: then a second person approves."""
        require(by, "deleteFilter")
        with self._control.change() as change:
            return submitting.delete(change, found(change.filter(id), id), by.name, if_match)

    # Decide

    def approve(self, by: Identity, id: str, revision: str, comment: str = "") -> FilterRecord:
        require(by, "approveFilter")
        with self._refusals_audited(by, id, revision), self._control.change() as change:
            record = found(change.filter(id), id)
            yes = approvals.Word(by.name, revision, plain(comment), self._valid)
            after = approvals.approve(change, record, yes, self._deadline)
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

    def reject(self, by: Identity, id: str, reason: str) -> FilterRecord:
        require(by, "rejectFilter")
        with self._control.change() as change:
            return approvals.reject(change, found(change.filter(id), id), by.name, plain(reason))

    # Order

    def deploy(self, by: Identity, id: str, target: str = "engine") -> Operation:
        require(by, "deployFilter")
        if target not in self.targets:
            raise NotFoundError(
                f"there is no target {plain(target)}", why=f"there are {', '.join(self.targets)}"
            )
        with self._control.change() as change:
            record = found(change.filter(id), id)
            operation = ordering.deploy(change, record, by.name, target, self._deadline)
            self._faults.at(Point.BEFORE_ORDER)
        self._faults.at(Point.AFTER_ORDER)
        return operation

    def rollback(self, by: Identity, id: str, to_version: int | None = None) -> Operation:
        require(by, "rollbackFilter")
        with self._control.change() as change:
            record = found(change.filter(id), id)
            return ordering.rollback(change, record, by.name, to_version, self._deadline)

    def pause(self, by: Identity, id: str) -> Operation:
        require(by, "pauseFilter")
        with self._control.change() as change:
            return ordering.pause(change, found(change.filter(id), id), by.name, self._deadline)

    def resume(self, by: Identity, id: str) -> Operation:
        require(by, "resumeFilter")
        observed = self.status(id).observed
        suspended = observed is not None and observed.state is State.FAILED
        with self._control.change() as change:
            record = found(change.filter(id), id)
            return ordering.resume(change, record, by.name, self._deadline, suspended=suspended)

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

    def generate(self, id: str) -> Generated:
        return reading.generated(self.get(id))

    def validate(self, id: str, sql: str | None = None) -> Validation:
        """The stored revision; SQL text sent along must equal what is generated."""
        return reading.validated(self.get(id), sql)

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
