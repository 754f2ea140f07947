"""How operations end, and what a failed one leads to. Each is decided on the state of that moment."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from headgate.filters.control import control_operations as operations
from headgate.filters.control import lifecycle
from headgate.filters.control.edit import withdraw_all
from headgate.filters.control.lifecycle import Action
from headgate.filters.control.records import take_out, version_of
from headgate.filters.store.control import Change
from headgate.filters.store.control_model import (
    FilterRecord,
    LiveVersion,
    Operation,
    OperationKind,
    OperationState,
    Status,
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
