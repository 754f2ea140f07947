"""Operations: what is asked of a target, one at a time for each filter."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

from headgate.filters.store.control import Change
from headgate.filters.store.control_model import (
    FilterRecord,
    Operation,
    OperationKind,
    OperationState,
)

RUNNING = (OperationState.RUNNING,)
# They end when the target has let go, however late: nothing may be left running by a deadline.
REMOVALS = (OperationKind.DISABLE, OperationKind.DELETE)


def begin(
    change: Change,
    record: FilterRecord,
    kind: OperationKind,
    by: str,
    deadline: timedelta,
    *,
    id: str = "",
    version: int | None = None,
    paused_before: bool = False,
    automatic: bool = False,
) -> Operation:
    """A new operation on what the record wants, or on the version that is to be taken away.

    One that was still running is superseded.
    """
    number = version or record.wanted_version or record.version
    about = change.version(record.id, number)
    for other in change.operations(record.id, RUNNING):
        end(change, other, OperationState.SUPERSEDED, f"{kind} was asked for meanwhile")
    return change.save_operation(
        Operation(
            id=id or new_id(),
            kind=kind,
            filter_id=record.id,
            version=number,
            revision=about.revision if about else record.revision,
            target=record.target,
            state=OperationState.RUNNING,
            by=by,
            at=change.now,
            deadline=change.now + deadline,
            paused_before=paused_before,
            automatic=automatic,
        )
    )


def end(
    change: Change,
    operation: Operation,
    state: OperationState,
    error: str | None = None,
    statement_ids: tuple[str, ...] = (),
) -> Operation:
    return change.save_operation(
        replace(
            operation,
            state=state,
            ended_at=change.now,
            error=error,
            statement_ids=statement_ids or operation.statement_ids,
        )
    )


def new_id() -> str:
    return uuid4().hex
