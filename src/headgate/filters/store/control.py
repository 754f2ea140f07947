"""The control plane's store. A change and its audit entry are one transaction.

`Change` is one write transaction: look, decide, write; it refuses to end with something written and no entry.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Engine

from headgate.core.identity import audit
from headgate.core.identity import audit as seals
from headgate.core.identity.audit import Sealed
from headgate.core.ledger.database import writing
from headgate.filters.store import rows as control_rows
from headgate.filters.store.model import (
    Accepted,
    Approval,
    AuditEntry,
    AuditHead,
    FilterRecord,
    FilterVersion,
    GitErrand,
    LiveVersion,
    Operation,
    OperationState,
    Page,
    Status,
)


class Change:
    """One write transaction of the control plane; nobody else writes meanwhile.

    It cannot end with something written and no audit entry.
    """

    def __init__(self, db: Connection, now: datetime) -> None:
        self._db = db
        self.now = now
        self._written = 0
        self._audited = 0
        self._seals: dict[str, str] = {}

    @property
    def db(self) -> Connection:
        """For stores beside this one whose rows are to change in the same transaction."""
        return self._db

    # Read: what is true until this transaction ends.

    def filter(self, id: str) -> FilterRecord | None:
        return control_rows.find_filter(self._db, id)

    def version(self, filter_id: str, number: int) -> FilterVersion | None:
        return control_rows.find_version(self._db, filter_id, number)

    def versions(self, filter_id: str) -> tuple[FilterVersion, ...]:
        return control_rows.versions(self._db, filter_id)

    def approvals(self, filter_id: str) -> tuple[Approval, ...]:
        return control_rows.approvals_of(self._db, filter_id)

    def live_versions(self, filter_id: str) -> tuple[LiveVersion, ...]:
        return control_rows.live_of(self._db, filter_id)

    def filters(self) -> tuple[FilterRecord, ...]:
        return control_rows.every_filter(self._db)

    def operation(self, id: str) -> Operation | None:
        return control_rows.find_operation(self._db, id)

    def operations(
        self, filter_id: str, states: Collection[OperationState] = ()
    ) -> tuple[Operation, ...]:
        return control_rows.find_operations(self._db, filter_id, states)

    # Write

    def save(self, record: FilterRecord) -> FilterRecord:
        self._written += 1
        control_rows.save_filter(self._db, record)
        return record

    def add_version(self, version: FilterVersion) -> FilterVersion:
        self._written += 1
        control_rows.add_version(self._db, version)
        self.seal(version)
        return version

    def add_approval(self, approval: Approval) -> Approval:
        self._written += 1
        control_rows.add_approval(self._db, approval)
        self.seal(approval)
        return approval

    def void_approvals(self, filter_id: str, why: str) -> int:
        self._written += 1
        for approval in self.approvals(filter_id):
            if not approval.void:
                self.seal(replace(approval, void=why))
        return control_rows.void_approvals(self._db, filter_id, why)

    def add_live(self, live: LiveVersion) -> None:
        self._written += 1
        control_rows.add_live(self._db, live)

    def withdraw_live(self, filter_id: str, numbers: Collection[int], by: str) -> None:
        """These versions are no way back any more."""
        self._written += 1
        control_rows.withdraw_live(self._db, filter_id, numbers, by)

    def save_operation(self, operation: Operation) -> Operation:
        self._written += 1
        control_rows.save_operation(self._db, operation)
        return operation

    def add_errand(self, filter_id: str, text: str | None, author: str, message: str) -> None:
        self._written += 1
        control_rows.add_errand(self._db, filter_id, text, author, message, self.now)

    def seal(self, row: Sealed) -> None:
        """Let the next audit entry hold the hash of this row, which `audit verify` compares it with."""
        self._seals[seals.key_of(row)] = seals.seal_of(row)

    def audit(self, actor: str, action: str, subject: str, **detail: Any) -> AuditEntry:
        self._audited += 1
        sealed = {seals.FIELD: self._seals} if self._seals else {}
        self._seals = {}
        return audit.append(self._db, self.now, actor, action, subject, {**detail, **sealed})

    def was_audited(
        self, actor: str, action: str, subject: str, detail: Mapping[str, object]
    ) -> bool:
        """Whether the log has this entry already: for what anybody could repeat without end."""
        return any(
            (one.actor, one.action, dict(one.detail)) == (actor, action, dict(detail))
            for one in audit.of_subject(self._db, subject)
        )

    def refuse_unless_audited(self) -> None:
        if (self._written and not self._audited) or self._seals:
            raise RuntimeError("a change of the control plane has no audit entry")


class ControlStore:
    """Filters, approvals, operations, the audit log, API keys and kept answers."""

    def __init__(self, engine: Engine, clock: Callable[[], datetime]) -> None:
        self._engine = engine
        self._clock = clock

    def now(self) -> datetime:
        return self._clock()

    @contextmanager
    def change(self) -> Generator[Change, None, None]:
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

    def audit(self, after: int = 0, limit: int | None = None) -> tuple[AuditEntry, ...]:
        """Entries after this one, in their order."""
        with self._engine.connect() as db:
            return audit.entries(db, after, limit)

    def audit_of(self, subject: str) -> tuple[AuditEntry, ...]:
        with self._engine.connect() as db:
            return audit.of_subject(db, subject)

    def audit_head(self) -> AuditHead:
        with self._engine.connect() as db:
            return audit.read_head(db)

    def audit_chain(self) -> tuple[tuple[AuditEntry, ...], AuditHead]:
        """All entries and the head, as they stood at one moment."""
        with writing(self._engine) as db:
            return audit.entries(db), audit.read_head(db)

    def audit_state(self) -> tuple[tuple[AuditEntry, ...], AuditHead, tuple[str, ...]]:
        """The chain, and where keys, versions and approvals are not what its entries say."""
        with writing(self._engine) as db:
            entries = audit.entries(db)
            return entries, audit.read_head(db), seals.differences(db, entries)
