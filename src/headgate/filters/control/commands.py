"""Deploy, roll back, pause and resume: checks and records the request, and later how the operation ended.

The first half is called for people by the service, the second half by the reconciler. A failed deployment
brings the version before it back. Each decision is made on the state inside its own transaction.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from headgate.errors import ConflictError, NotFoundError, StaleError
from headgate.filters.control import lifecycle, operations
from headgate.filters.control.approvals import (
    approval_of,
    declared_in,
    refuse_other_meaning,
    refuse_unless_approved,
    was_approved_for,
)
from headgate.filters.control.edit import withdraw_all
from headgate.filters.control.lifecycle import Action
from headgate.filters.control.revisions import accept, take_out, version_of
from headgate.filters.store.control import Change
from headgate.filters.store.model import (
    FilterRecord,
    FilterVersion,
    LiveVersion,
    Operation,
    OperationKind,
    OperationState,
    Status,
    TopicEnd,
)
from headgate.filters.targets.deployment import ENGINE


def deploy(
    change: Change,
    record: FilterRecord,
    by: str,
    target: str,
    deadline: timedelta,
    since: TopicEnd | None = None,
) -> Operation:
    """Let the approved version run; what runs until then goes on until it does.

    `since` is where its source ends now: `backfill: none` sends nothing from before.
    """
    after = lifecycle.following(record, Action.DEPLOY)
    _refuse_another_target(record, target)
    _refuse_during_removal(change, record)
    version = version_of(change, record, record.version)
    declared = declared_in(version)
    refuse_other_meaning(record.id, declared, target)
    refuse_unless_approved(change, record, version, target)
    change.audit(by, "deploy", record.id, version=version.version, target=target)
    asked = replace(record, status=after, target=target, paused=False, deployment_error=None)
    # What runs on this source already has its beginning: the next version goes on from there.
    if not (record.runs and record.since and record.since.topic == declared.source):
        asked = replace(asked, since=since)
    return _begin(change, asked, version, OperationKind.DEPLOY, by, deadline, record.paused)


def rollback(
    change: Change,
    record: FilterRecord,
    by: str,
    to: int | None,
    deadline: timedelta,
    running: int | None = None,
) -> Operation:
    """A version that was live before runs again, as a new version. A paused filter stays paused.

    `running` is the version that the caller takes to run now: pressed twice, it goes back once. What
    is rolled back from is no way back any more, so that a second rollback goes on and not round.
    """
    after = lifecycle.following(record, Action.ROLLBACK)
    _refuse_unless_running(record, "rollback")
    _refuse_another_version(record, running)
    old = _earlier(change, record, to)
    _refuse_other_text(change, record, old)
    _withdraw(change, record, old, by)
    note = f"rollback to version {old.version}"
    version = change.add_version(
        replace(
            old,
            version=record.version + 1,
            written_at=change.now,
            note=note,
            restores=old.written,
        )
    )
    approval = approval_of(change, old)
    change.void_approvals(record.id, f"rolled back by {by}")
    change.audit(by, "rollback", record.id, version=version.version, to=old.version)
    asked = replace(
        record,
        version=version.version,
        revision=version.revision,
        document=version.document,
        author=version.author,
        status=after,
        approved_by=approval.by if approval else None,
        approved_at=approval.at if approval else None,
        deployment_error=None,
        written_at=change.now,
    )
    asked = accept(change, asked, note)
    return _begin(change, asked, version, OperationKind.ROLLBACK, by, deadline, record.paused)


def pause(change: Change, record: FilterRecord, by: str, deadline: timedelta) -> Operation:
    """No record goes to its topic from the next batch on. To go on takes a new approval."""
    lifecycle.following(record, Action.PAUSE)
    _refuse_unless_running(record, "pause")
    if record.paused:
        raise lifecycle.refused(record, "pause", "it is paused already")
    change.void_approvals(record.id, f"paused by {by}")
    change.audit(by, "pause", record.id, version=record.wanted_version)
    paused = change.save(replace(record, paused=True, updated_at=change.now))
    return operations.begin(change, paused, OperationKind.PAUSE, by, deadline, paused_before=True)


def resume(
    change: Change, record: FilterRecord, by: str, deadline: timedelta, *, suspended: bool
) -> Operation:
    """What was paused or suspended goes on, if an approval of what would run holds."""
    lifecycle.following(record, Action.RESUME)
    _refuse_unless_running(record, "resume")
    if not record.paused and not suspended:
        raise lifecycle.refused(record, "resume", "it is not paused")
    version = version_of(change, record, record.wanted_version or record.version)
    refuse_unless_approved(change, record, version, record.target)
    change.audit(by, "resume", record.id, version=version.version)
    going = replace(record, paused=False)
    return _begin(change, going, version, OperationKind.RESUME, by, deadline, record.paused)


def _begin(
    change: Change,
    record: FilterRecord,
    version: FilterVersion,
    kind: OperationKind,
    by: str,
    deadline: timedelta,
    paused_before: bool,
) -> Operation:
    id = operations.new_id()
    record = replace(record, wanted_version=version.version, wanted_deployment=id)
    record = change.save(replace(record, updated_at=change.now))
    return operations.begin(change, record, kind, by, deadline, id=id, paused_before=paused_before)


def _earlier(change: Change, record: FilterRecord, to: int | None) -> FilterVersion:
    """The version to go back to: one that was live, so that a second person approved it."""
    ways = ways_back(change, record)
    if to is None:
        return version_of(change, record, _one_back(change, record, ways))
    if to in ways:
        return version_of(change, record, to)
    withdrawn = {one.version: one.withdrawn for one in change.live_versions(record.id)}
    if withdrawn.get(to):
        raise ConflictError(
            f"version {to} of {record.id} is no way back any more",
            why=withdrawn[to],
            fix="submit its document as an update and let it be approved",
        )
    raise NotFoundError(
        f"version {to} of {record.id} was never live",
        why=f"live were {', '.join(map(str, sorted(ways))) or 'none'}",
    )


def ways_back(change: Change, record: FilterRecord) -> tuple[int, ...]:
    """Versions that were live and never rolled back from, the last that went live first."""
    live = change.live_versions(record.id)
    withdrawn = {one.version for one in live if one.withdrawn}
    return tuple(dict.fromkeys(one.version for one in live if one.version not in withdrawn))


def _one_back(change: Change, record: FilterRecord, ways: tuple[int, ...]) -> int:
    if record.status is lifecycle.F and record.deployed_version in ways:
        return record.deployed_version
    for number in ways:
        if version_of(change, record, number).revision != record.deployed_revision:
            return number
    raise ConflictError(
        f"{record.id} cannot be rolled back",
        why="no other version of it was ever live, but for those that were rolled back from",
        fix="pause it, or write a new version",
    )


def _withdraw(change: Change, record: FilterRecord, to: FilterVersion, by: str) -> None:
    """What runs now is left for good, in every version that had the same content until now."""
    if record.deployed_version is None or record.deployed_revision == to.revision:
        return
    left = [
        one.version
        for one in change.versions(record.id)
        if one.version <= record.deployed_version and one.revision == record.deployed_revision
    ]
    change.withdraw_live(record.id, left, f"{by} rolled back from it to version {to.version}")


def _refuse_another_version(record: FilterRecord, running: int | None) -> None:
    if running is not None and running != record.deployed_version:
        raise StaleError(
            f"version {running} of {record.id} is not what runs",
            why=f"version {record.deployed_version} does: somebody deployed or rolled back already",
            fix="look at it again, then decide",
        )


def _refuse_other_text(change: Change, record: FilterRecord, version: FilterVersion) -> None:
    if not was_approved_for(change, version, record.target):
        raise ConflictError(
            f"version {version.version} of {record.id} would run other SQL than was approved",
            why=f"no approval is of the text that {record.target} would be sent of it now",
            fix="submit its document as an update and let it be approved",
        )


def _refuse_unless_running(record: FilterRecord, spoken: str) -> None:
    if not record.runs:
        raise lifecycle.refused(record, spoken, "nothing of it runs")


def _refuse_during_removal(change: Change, record: FilterRecord) -> None:
    """A target that knows filters by their topics must have let go of the old ones first."""
    running = change.operations(record.id, operations.RUNNING)
    if any(one.kind in operations.REMOVALS and one.target != ENGINE for one in running):
        raise ConflictError(
            f"what ran of {record.id} is still being taken away",
            why=next((one.error for one in running if one.error), ""),
            fix="wait until that is done, then deploy",
        )


def _refuse_another_target(record: FilterRecord, target: str) -> None:
    if record.runs and record.target != target:
        raise ConflictError(
            f"{record.id} runs at {record.target} and cannot be deployed to {target} as well",
            fix=f"turn it off (enabled: false), let it be approved anew, then deploy it to {target}",
        )


SYSTEM = "system"
ROLLBACK_SECONDS = timedelta(seconds=30)
LETS_RUN = (OperationKind.DEPLOY, OperationKind.ROLLBACK, OperationKind.RESUME)


def succeeded(change: Change, operation: Operation, statement_ids: tuple[str, ...]) -> None:
    """The target does what was asked of it."""
    current, record = _current(change, operation)
    if current is None or record is None:
        return
    operations.end(change, current, OperationState.SUCCEEDED, None, statement_ids)
    if current.kind in LETS_RUN or record.status is Status.DEPLOYING:
        record = _live(change, record, statement_ids)
    elif current.kind is OperationKind.DELETE:
        record = _gone(change, record, current.by)
    elif current.error is not None and record.deployment_error == current.error:
        record = replace(record, deployment_error=None)
    change.audit(SYSTEM, f"{current.kind}_done", record.id, operation=current.id)
    change.save(record)


def failed(change: Change, operation: Operation, why: str) -> None:
    """It came to nothing: say why, and let what ran before run again."""
    current, record = _current(change, operation)
    if current is None or record is None:
        return
    operations.end(change, current, OperationState.FAILED, why)
    change.audit(SYSTEM, f"{current.kind}_failed", record.id, operation=current.id, why=why)
    record = replace(record, deployment_error=why, updated_at=change.now)
    if record.status is Status.DEPLOYING:
        record = _rolled_back(change, record, current)
    change.save(record)


def delayed(change: Change, operation: Operation, why: str) -> None:
    """It takes longer than it should: say why, and go on trying."""
    current, record = _current(change, operation)
    if current is None or record is None or current.error == why:
        return
    change.save_operation(replace(current, error=why))
    change.audit(SYSTEM, f"{current.kind}_delayed", record.id, operation=current.id, why=why)
    # A removal after a failure leaves the failure's own reason to be read.
    if not current.automatic:
        change.save(replace(record, deployment_error=why, updated_at=change.now))


def _current(change: Change, operation: Operation) -> tuple[Operation | None, FilterRecord | None]:
    """As they are now, unless another reconciler or a later request was quicker."""
    now = change.operation(operation.id)
    if now is None or now.state.ended:
        return None, None
    return now, change.filter(operation.filter_id)


def _live(change: Change, record: FilterRecord, statement_ids: tuple[str, ...]) -> FilterRecord:
    if record.status is Status.DEPLOYING:
        record = replace(record, status=lifecycle.following(record, Action.GO_LIVE))
        record = replace(record, deployment_error=None)
    number = record.wanted_version or record.version
    live = change.live_versions(record.id)
    if not live or live[0].version != number:
        change.add_live(LiveVersion(record.id, number, change.now))
    return replace(
        record,
        deployed_version=number,
        deployed_revision=version_of(change, record, number).revision,
        deployed_at=change.now,
        statement_ids=statement_ids,
        updated_at=change.now,
    )


def _gone(change: Change, record: FilterRecord, by: str) -> FilterRecord:
    status = lifecycle.following(record, Action.REMOVE)
    record = replace(
        record,
        status=status,
        deployed_version=None,
        deployed_revision=None,
        paused=False,
        statement_ids=(),
        deployment_error=None,
        former_status=None,
        since=None,
        updated_at=change.now,
    )
    change.void_approvals(record.id, "deleted")
    withdraw_all(change, record, by)
    return take_out(change, record, by)


def _rolled_back(change: Change, record: FilterRecord, operation: Operation) -> FilterRecord:
    """The last version that was live shall run again, paused if it was; else nothing shall."""
    record = replace(record, status=lifecycle.following(record, Action.FAIL))
    if record.deployed_version is None:
        record = replace(record, wanted_version=None, wanted_deployment=None, since=None)
        _take_away(change, record, operation)
        return record
    id = operations.new_id()
    record = replace(
        record,
        wanted_version=record.deployed_version,
        wanted_deployment=id,
        paused=operation.paused_before,
    )
    operations.begin(
        change, record, OperationKind.ROLLBACK, SYSTEM, ROLLBACK_SECONDS, id=id, automatic=True
    )
    change.audit(SYSTEM, "roll_back", record.id, to=record.deployed_version, operation=id)
    return record


def _take_away(change: Change, record: FilterRecord, operation: Operation) -> None:
    operations.begin(
        change,
        record,
        OperationKind.DISABLE,
        SYSTEM,
        ROLLBACK_SECONDS,
        version=operation.version,
        automatic=True,
    )
