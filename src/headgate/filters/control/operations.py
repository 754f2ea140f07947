"""Operations on a target, one at a time for each filter; and the named points between steps at which tests kill.

A new operation supersedes the running one. `ControlFaults` kills the process at one point, once.
"""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from uuid import uuid4

from headgate.filters.store.control import Change
from headgate.filters.store.model import (
    FilterRecord,
    Operation,
    OperationKind,
    OperationState,
)

VARIABLE = "HEADGATE_CONTROL_FAULT"


class Point(StrEnum):
    """Where a fault can strike, in the order of approve and deploy."""

    BEFORE_APPROVAL = "before-approval"
    AFTER_APPROVAL = "after-approval"
    AFTER_COMMIT = "after-commit"
    AFTER_COMMIT_NOTED = "after-commit-noted"
    BEFORE_ORDER = "before-order"
    AFTER_ORDER = "after-order"
    AFTER_TOLD = "after-told"
    BEFORE_OUTCOME = "before-outcome"
    AFTER_OUTCOME = "after-outcome"


class ControlFaults:
    """Strikes at one point, once: `HEADGATE_CONTROL_FAULT=after-order:/path/of/witness`."""

    def __init__(self, text: str = "") -> None:
        name, _, self._witness = text.partition(":")
        self._point = Point(name) if name else None

    @classmethod
    def from_environment(cls) -> ControlFaults:
        return cls(os.environ.get(VARIABLE, ""))

    def at(self, point: Point) -> None:
        if point is self._point:
            if self._witness:
                Path(self._witness).write_text(point)
            self.strike()

    def strike(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


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
