"""Asking for what touches a target: deploy, roll back, pause, resume. The reconciler does it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from headgate.control import lifecycle, operations
from headgate.control.approvals import refuse_unless_approved
from headgate.control.deployments import ENGINE
from headgate.control.lifecycle import Action
from headgate.control.records import accept, version_of
from headgate.control.revisions import drafted
from headgate.errors import ConflictError, NotFoundError
from headgate.store.control import Change
from headgate.store.control_model import (
    FilterRecord,
    FilterVersion,
    Operation,
    OperationKind,
    OperationState,
)

DEPLOYS = (OperationKind.DEPLOY, OperationKind.ROLLBACK)


def deploy(
    change: Change, record: FilterRecord, by: str, target: str, deadline: timedelta
) -> Operation:
    """Let the approved version run; what runs until then goes on until it does."""
    after = lifecycle.following(record, Action.DEPLOY)
    _refuse_another_target(record, target)
    _refuse_during_removal(change, record)
    version = version_of(change, record, record.version)
    refuse_unless_approved(change, record, version)
    change.audit(by, "deploy", record.id, version=version.version, target=target)
    asked = replace(record, status=after, target=target, paused=False, deployment_error=None)
    return _begin(change, asked, version, OperationKind.DEPLOY, by, deadline, record.paused)


def rollback(
    change: Change, record: FilterRecord, by: str, to: int | None, deadline: timedelta
) -> Operation:
    """A version that was live before runs again, as a new version. A paused filter stays paused."""
    after = lifecycle.following(record, Action.ROLLBACK)
    _refuse_unless_running(record, "rollback")
    old = _earlier(change, record, to)
    _refuse_other_sql(record, old)
    note = f"rollback to version {old.version}"
    version = change.add_version(
        replace(old, version=record.version + 1, written_at=change.now, note=note)
    )
    change.void_approvals(record.id, f"rolled back by {by}")
    change.audit(by, "rollback", record.id, version=version.version, to=old.version)
    asked = replace(
        record,
        version=version.version,
        revision=version.revision,
        document=version.document,
        author=version.author,
        status=after,
        deployment_error=None,
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
    refuse_unless_approved(change, record, version)
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
    lived = was_live(change, record)
    if to is not None:
        if to not in lived:
            raise NotFoundError(
                f"version {to} of {record.id} was never live",
                why=f"live were {', '.join(map(str, sorted(lived))) or 'none'}",
            )
        return version_of(change, record, to)
    return version_of(change, record, _one_back(change, record, lived))


def was_live(change: Change, record: FilterRecord) -> tuple[int, ...]:
    """Versions that were live since the filter was created (again), the newest deployment first."""
    done = change.operations(record.id, (OperationState.SUCCEEDED,))
    mine = (one for one in done if one.kind in DEPLOYS and one.at >= record.created_at)
    return tuple(dict.fromkeys(one.version for one in mine))


def _one_back(change: Change, record: FilterRecord, lived: tuple[int, ...]) -> int:
    now = record.deployed_revision
    if record.deployed_version and record.status is lifecycle.F:
        return record.deployed_version
    for number in lived:
        if version_of(change, record, number).revision != now:
            return number
    raise ConflictError(
        f"{record.id} cannot be rolled back",
        why="no other version of it was ever live",
        fix="pause it, or write a new version",
    )


def _refuse_other_sql(record: FilterRecord, version: FilterVersion) -> None:
    if drafted(version.document).sql_hash != version.sql_hash:
        raise ConflictError(
            f"version {version.version} of {record.id} would run other SQL than was approved",
            why="Headgate compiles it to something else than it did then",
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
