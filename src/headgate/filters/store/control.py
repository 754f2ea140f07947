"""The control plane's store: reads, and `Change`, one audited transaction that looks, decides and writes."""

from __future__ import annotations

from collections.abc import Collection, Generator
from contextlib import contextmanager
from dataclasses import replace

from headgate.core.identity.api_keys import sealed_rows
from headgate.core.identity.audit import (
    AuditedChange,
    AuditEntry,
    AuditHead,
    AuditLog,
    differences,
    entries,
    read_head,
)
from headgate.core.ledger.database import writing
from headgate.filters.store import rows as control_rows
from headgate.filters.store.model import (
    Accepted,
    Approval,
    FilterRecord,
    FilterVersion,
    GitErrand,
    LiveVersion,
    Operation,
    OperationState,
    Page,
    Status,
)


class Change(AuditedChange):
    """One write transaction of the control plane."""

    # Read: what is true until this transaction ends.

    def filter(self, id: str) -> FilterRecord | None:
        return control_rows.find_filter(self.db, id)

    def version(self, filter_id: str, number: int) -> FilterVersion | None:
        return control_rows.find_version(self.db, filter_id, number)

    def versions(self, filter_id: str) -> tuple[FilterVersion, ...]:
        return control_rows.versions(self.db, filter_id)

    def approvals(self, filter_id: str) -> tuple[Approval, ...]:
        return control_rows.approvals_of(self.db, filter_id)

    def live_versions(self, filter_id: str) -> tuple[LiveVersion, ...]:
        return control_rows.live_of(self.db, filter_id)

    def filters(self) -> tuple[FilterRecord, ...]:
        return control_rows.every_filter(self.db)

    def operation(self, id: str) -> Operation | None:
        return control_rows.find_operation(self.db, id)

    def operations(
        self, filter_id: str, states: Collection[OperationState] = ()
    ) -> tuple[Operation, ...]:
        return control_rows.find_operations(self.db, filter_id, states)

    # Write

    def save(self, record: FilterRecord) -> FilterRecord:
        self._written += 1
        control_rows.save_filter(self.db, record)
        return record

    def add_version(self, version: FilterVersion) -> FilterVersion:
        self._written += 1
        control_rows.add_version(self.db, version)
        self.seal(version)
        return version

    def add_approval(self, approval: Approval) -> Approval:
        self._written += 1
        control_rows.add_approval(self.db, approval)
        self.seal(approval)
        return approval

    def void_approvals(self, filter_id: str, why: str) -> int:
        self._written += 1
        for approval in self.approvals(filter_id):
            if not approval.void:
                self.seal(replace(approval, void=why))
        return control_rows.void_approvals(self.db, filter_id, why)

    def add_live(self, live: LiveVersion) -> None:
        self._written += 1
        control_rows.add_live(self.db, live)

    def withdraw_live(self, filter_id: str, numbers: Collection[int], by: str) -> None:
        """These versions are no way back any more."""
        self._written += 1
        control_rows.withdraw_live(self.db, filter_id, numbers, by)

    def save_operation(self, operation: Operation) -> Operation:
        self._written += 1
        control_rows.save_operation(self.db, operation)
        return operation

    def add_errand(self, filter_id: str, text: str | None, author: str, message: str) -> None:
        self._written += 1
        control_rows.add_errand(self.db, filter_id, text, author, message, self.now)


class ControlStore(AuditLog):
    """Filters, approvals, operations and git errands, with the audit log of their changes."""

    @contextmanager
    def change(self) -> Generator[Change]:
        """Look, decide and write in one transaction; all of it is undone when anything raises."""
        with writing(self._engine) as db:
            change = Change(db, self._clock())
            yield change
            change.refuse_unless_audited()

    # Filters

    def filter(self, id: str) -> FilterRecord | None:
        with self._engine.connect() as db:
            return control_rows.find_filter(db, id)

    def filters(self) -> tuple[FilterRecord, ...]:
        with self._engine.connect() as db:
            return control_rows.every_filter(db)

    def page(
        self,
        statuses: Collection[Status] = (),
        consumer: str | None = None,
        words: str | None = None,
        after: str | None = None,
        limit: int = 50,
    ) -> Page:
        with self._engine.connect() as db:
            return control_rows.page(db, statuses, consumer, words, after, limit)

    def version(self, filter_id: str, number: int) -> FilterVersion | None:
        with self._engine.connect() as db:
            return control_rows.find_version(db, filter_id, number)

    def versions(self, filter_id: str) -> tuple[FilterVersion, ...]:
        with self._engine.connect() as db:
            return control_rows.versions(db, filter_id)

    def accepted(self) -> tuple[Accepted, ...]:
        """The contents that must stand in git."""
        with self._engine.connect() as db:
            return control_rows.accepted(db)

    def approvals(self, filter_id: str) -> tuple[Approval, ...]:
        with self._engine.connect() as db:
            return control_rows.approvals_of(db, filter_id)

    def submitters(self) -> frozenset[str]:
        """Everybody who ever submitted a version, by the name of their key or token."""
        with self._engine.connect() as db:
            return control_rows.submitters(db)

    def sources(self) -> frozenset[str]:
        """The topics that filters read which are not deleted."""
        records = (one for one in self.filters() if one.status is not Status.DELETED)
        return frozenset(str(one.document["source"]) for one in records if "source" in one.document)

    # Operations

    def operation(self, id: str) -> Operation | None:
        with self._engine.connect() as db:
            return control_rows.find_operation(db, id)

    def operations(
        self,
        filter_id: str | None = None,
        states: Collection[OperationState] = (),
        limit: int | None = None,
    ) -> tuple[Operation, ...]:
        """Operations, the newest first."""
        with self._engine.connect() as db:
            return control_rows.find_operations(db, filter_id, states, limit)

    # Git

    def open_errands(self) -> tuple[GitErrand, ...]:
        with self._engine.connect() as db:
            return control_rows.open_errands(db)

    def errands(self, filter_id: str) -> tuple[GitErrand, ...]:
        with self._engine.connect() as db:
            return control_rows.errands(db, filter_id)

    def note_errand(self, id: int, commit: str | None, trouble: str = "") -> None:
        with writing(self._engine) as db:
            control_rows.note_errand(db, id, commit, trouble)

    # Audit

    def audit_state(self) -> tuple[tuple[AuditEntry, ...], AuditHead, tuple[str, ...]]:
        """The chain, and where keys, versions and approvals are not what its entries say."""
        with writing(self._engine) as db:
            chain, head = entries(db), read_head(db)
            rows = [*control_rows.every_version(db), *control_rows.every_approval(db)]
            differing = differences([*rows, *sealed_rows(db)], chain)
            return chain, head, (*differing, *control_rows.filters_differ(db))
