"""Approvals: who may approve what, what an approval is bound to, and when it ends.

Nobody approves what they wrote, admins included; there is no way around this. An approval is bound to the revision
and to the text each target is sent; it ends with an edit, a pause, a rollback, or its time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import uuid4

from headgate.core.identity.roles import UNKNOWN_WRITER, person
from headgate.errors import ConflictError, ForbiddenError, StaleError
from headgate.filters.control import lifecycle, operations
from headgate.filters.control.lifecycle import Action
from headgate.filters.control.revisions import (
    accept,
    bounds_of,
    differences_at,
    unknown_writers,
    version_of,
)
from headgate.filters.loader import parse_filter
from headgate.filters.spec import Filter
from headgate.filters.store.control import Change
from headgate.filters.store.model import (
    Approval,
    Decision,
    FilterRecord,
    FilterVersion,
    OperationKind,
    Status,
)


@dataclass(frozen=True)
class Word:
    """What somebody says to a revision, why, how long it holds, and for which targets."""

    by: str
    revision: str
    comment: str
    valid_for: timedelta
    targets: Collection[str] = ()


def approve(change: Change, record: FilterRecord, yes: Word, deadline: timedelta) -> FilterRecord:
    """The record after a second person said yes to exactly this revision."""
    if record.status is Status.PENDING_DELETION:
        return _approve_deletion(change, record, yes, deadline)
    if (
        yes.revision != record.revision
        and yes.revision == record.deployed_revision
        and record.paused
    ):
        return _approve_resuming(change, record, yes)
    _refuse_other_revision(record, yes.revision)
    record = _expired_is_pending(change, record)
    version = version_of(change, record, record.version)
    if record.status is Status.DEPLOYED:
        return _approve_resuming(change, record, yes)
    after = lifecycle.following(record, Action.APPROVE)
    _refuse_authors(record, writers_of(change, version), yes.by)
    _refuse_unknown_writers(record, version)
    _refuse_unless_it_can_run(record, version, yes.targets)
    _record(change, version, yes)
    record = replace(record, status=after, approved_by=yes.by, approved_at=change.now)
    record = accept(change, replace(record, updated_at=change.now), f"approved by {yes.by}")
    detail = {"version": version.version, "revision": version.revision, "comment": yes.comment}
    bounds = bounds_of(declared_in(version), yes.targets)
    change.audit(yes.by, "approve", record.id, sql_hash=version.sql_hash, bounds=bounds, **detail)
    return change.save(record)


def reject(change: Change, record: FilterRecord, by: str, reason: str) -> FilterRecord:
    """The version is refused, or the deletion that was asked for."""
    if record.status is Status.PENDING_DELETION:
        return _reject_deletion(change, record, by, reason)
    after = lifecycle.following(record, Action.REJECT)
    change.void_approvals(record.id, f"rejected by {by}")
    version = version_of(change, record, record.version)
    no = Word(by, record.revision, reason, timedelta())
    _record(change, version, no, Decision.REJECTED)
    change.audit(by, "reject", record.id, version=record.version, reason=reason)
    record = replace(record, status=after, approved_by=None, approved_at=None)
    return change.save(replace(record, updated_at=change.now))


def refuse_unless_approved(
    change: Change, record: FilterRecord, version: FilterVersion, target: str
) -> None:
    """ConflictError unless somebody else's approval holds for exactly what the target would run."""
    if not is_approved(change, version, (target,)):
        raise ConflictError(
            f"version {version.version} of {record.id} has no approval that holds for {target}",
            why="approvals end with every edit, with a pause, and after their time; "
            "they are of the text that was shown, for the targets that there were",
            fix="let a second person approve it, then try again",
        )


def is_approved(
    change: Change, version: FilterVersion, targets: Collection[str] | None = None
) -> bool:
    """Whether an approval holds for what this version compiles to now, at one of these targets.

    Without targets: at one of those that the approval was given for.
    """
    writers, declared = writers_of(change, version), declared_in(version)
    return any(
        approval.version == version.version
        and approval.holds(change.now)
        and approval.covers(bounds_of(declared, targets or approval.bounds))
        and not is_among(approval.by, writers)
        and not unknown_writers(version.authors)
        for approval in change.approvals(version.filter_id)
    )


def was_approved_for(change: Change, version: FilterVersion, target: str) -> bool:
    """Whether somebody once approved the text that this target would be sent of the version now.

    That the approval has ended since does not matter to a rollback.
    """
    bounds = bounds_of(declared_in(version), (target,))
    return any(
        approval.covers(bounds)
        for approval in change.approvals(version.filter_id)
        if approval.version in (version.version, version.written)
    )


def approval_of(change: Change, version: FilterVersion) -> Approval | None:
    """The approval by which this content went live first, or the last one while it never did."""
    live = change.live_versions(version.filter_id)
    first = min((one.at for one in live if one.version == version.written), default=change.now)
    given = [
        approval
        for approval in change.approvals(version.filter_id)
        if approval.version == version.written and approval.decision is Decision.APPROVED
        if approval.at <= first
    ]
    return given[-1] if given else None


def writers_of(change: Change, version: FilterVersion) -> tuple[str, ...]:
    """Everybody who wrote this content, in whatever version of the filter: none may approve it."""
    same = (one for one in change.versions(version.filter_id) if one.revision == version.revision)
    return tuple(dict.fromkeys([*version.authors, *(name for one in same for name in one.authors)]))


def declared_in(version: FilterVersion) -> Filter:
    return parse_filter(dict(version.document))


def _expired_is_pending(change: Change, record: FilterRecord) -> FilterRecord:
    """An approved version whose approval ended waits for the next one."""
    if record.status is not Status.APPROVED:
        return record
    if is_approved(change, version_of(change, record, record.version)):
        return record
    return expire(change, record)


def expire(change: Change, record: FilterRecord) -> FilterRecord:
    """The approval of the newest version has ended unused."""
    after = lifecycle.following(record, Action.EXPIRE)
    change.void_approvals(record.id, "its time is over")
    change.audit("system", "expire", record.id, version=record.version)
    record = replace(record, status=after, approved_by=None, approved_at=None)
    return change.save(replace(record, updated_at=change.now))


def _approve_resuming(change: Change, record: FilterRecord, yes: Word) -> FilterRecord:
    """What was live and is paused, or was suspended, may be resumed again."""
    number = record.deployed_version
    version = version_of(change, record, record.version if number is None else number)
    if is_approved(change, version, (record.target,)):
        raise lifecycle.refused(record, "approve", f"version {version.version} is approved")
    _refuse_authors(record, writers_of(change, version), yes.by)
    _record(change, version, yes)
    detail = {"version": version.version, "comment": yes.comment}
    change.audit(yes.by, "approve", record.id, resume=True, **detail)
    return change.save(replace(record, updated_at=change.now))


def _approve_deletion(
    change: Change, record: FilterRecord, yes: Word, deadline: timedelta
) -> FilterRecord:
    _refuse_other_revision(record, yes.revision)
    refuse_removal_under_way(record, "approve")
    _refuse_authors(record, (record.asked_by or "",), yes.by)
    _record(change, version_of(change, record, record.version), yes)
    detail = {"version": record.version, "comment": yes.comment}
    change.audit(yes.by, "approve_deletion", record.id, **detail)
    running = record.wanted_version
    record = replace(
        record, wanted_deployment=None, wanted_version=None, asked_by=None, updated_at=change.now
    )
    operations.begin(change, record, OperationKind.DELETE, yes.by, deadline, version=running)
    return change.save(record)


def _reject_deletion(change: Change, record: FilterRecord, by: str, reason: str) -> FilterRecord:
    refuse_removal_under_way(record, "reject")
    lifecycle.following(record, Action.REJECT_DELETION)
    change.audit(by, "reject_deletion", record.id, reason=reason)
    former = record.former_status or Status.DEPLOYED
    record = replace(record, status=former, former_status=None, asked_by=None)
    return change.save(replace(record, updated_at=change.now))


def refuse_removal_under_way(record: FilterRecord, spoken: str) -> None:
    """A deletion that nobody asks for any more is one that was approved."""
    if record.status is Status.PENDING_DELETION and record.asked_by is None:
        raise lifecycle.refused(record, spoken, "its deletion is approved and under way")


def _record(
    change: Change, version: FilterVersion, word: Word, decision: Decision = Decision.APPROVED
) -> None:
    approval = Approval(
        id=uuid4().hex,
        filter_id=version.filter_id,
        version=version.version,
        bounds=bounds_of(declared_in(version), word.targets),
        decision=decision,
        by=word.by,
        comment=word.comment,
        at=change.now,
        expires_at=change.now + word.valid_for,
    )
    change.add_approval(approval)


def is_among(name: str, names: Iterable[str]) -> bool:
    """Whether this person is one of these, however the names are written."""
    return person(name) in {person(other) for other in names}


def _refuse_other_revision(record: FilterRecord, revision: str) -> None:
    if revision != record.revision:
        raise StaleError(
            f"{record.id} is no longer what you looked at",
            why=f"its revision is {record.revision[:12]}, you name {revision[:12]!r}",
            fix="read it again, then decide",
        )


def _refuse_authors(record: FilterRecord, authors: tuple[str, ...], by: str) -> None:
    if is_among(by, authors):
        raise ForbiddenError(
            f"{by} may not approve {record.id}: nobody approves what they wrote",
            why=f"it was written or asked for by {', '.join(sorted(authors))}",
            fix="let somebody else approve it",
        )


def _refuse_unknown_writers(record: FilterRecord, version: FilterVersion) -> None:
    if unknown := unknown_writers(version.authors):
        raise ForbiddenError(
            f"nobody may approve {record.id}: it was written in git by somebody unknown here",
            why=f"{', '.join(one.removeprefix(UNKNOWN_WRITER) for one in unknown[:5])}: no key and "
            "no token has this name, so that it may be the approver's own work",
            fix="say whose it is (headgate keys git add <name> <mail>) and mend the drift again, "
            "or let a known author submit the document",
        )


def _refuse_unless_it_can_run(
    record: FilterRecord, version: FilterVersion, targets: Collection[str]
) -> None:
    """What runs can be replaced only where it runs; what does not run, at some target at least."""
    declared = declared_in(version)
    possible = (record.target,) if record.runs else targets
    if possible and not bounds_of(declared, possible):
        refuse_other_meaning(record.id, declared, next(iter(possible)))


def refuse_other_meaning(id: str, declared: Filter, target: str) -> None:
    """ConflictError when the target would not do what the document is documented to mean."""
    if differences := differences_at(declared, target):
        raise ConflictError(
            f"{id} would mean something else at {target}",
            why="\n".join(differences),
            fix="write it with other conditions, or let it run on the engine",
        )
