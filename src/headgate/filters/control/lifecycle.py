"""The table of a filter's life: which action is legal in which status, and the status after it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from headgate.errors import IllegalTransitionError
from headgate.filters.store.model import FilterRecord, Status

P, A, G, D, F, X, R, Q, E = (
    Status.PENDING_APPROVAL,
    Status.APPROVED,
    Status.DEPLOYING,
    Status.DEPLOYED,
    Status.FAILED,
    Status.DISABLED,
    Status.REJECTED,
    Status.PENDING_DELETION,
    Status.DELETED,
)


class Action(StrEnum):
    """What can be done to a filter. The last five the control plane does by itself."""

    CREATE = "create"
    UPDATE = "update"
    DISABLE = "disable"
    APPROVE = "approve"
    REJECT = "reject"
    DEPLOY = "deploy"
    ROLLBACK = "rollback"
    PAUSE = "pause"
    RESUME = "resume"
    DELETE = "delete"
    ASK_DELETION = "ask_deletion"
    APPROVE_DELETION = "approve_deletion"
    REJECT_DELETION = "reject_deletion"
    EXPIRE = "expire"
    GO_LIVE = "go_live"
    FAIL = "fail"
    REMOVE = "remove"
    ROLL_BACK_FAILED = "roll_back_failed"


BY_ITSELF = frozenset(
    {Action.EXPIRE, Action.GO_LIVE, Action.FAIL, Action.REMOVE, Action.ROLL_BACK_FAILED}
)
# How these are called from outside: one verb, whatever it is done to.
SPOKEN = {
    Action.ASK_DELETION: "delete",
    Action.APPROVE_DELETION: "approve",
    Action.REJECT_DELETION: "reject",
}


def _stays(*statuses: Status) -> dict[Status, Status]:
    return {status: status for status in statuses}


def _to(after: Status, *before: Status) -> dict[Status, Status]:
    return dict.fromkeys(before, after)


# What there must be something at a target for.
OF_WHAT_RUNS = frozenset({Action.ROLLBACK, Action.PAUSE, Action.RESUME})

# A rejected deletion goes back to the status before it, which the record keeps.
LEGAL: Mapping[Action, Mapping[Status, Status]] = {
    Action.CREATE: _to(P, E),
    Action.UPDATE: _to(P, P, A, D, F, X, R),
    # To stop something is legal whatever is under way; of what runs only `enabled` may differ then.
    Action.DISABLE: _to(X, P, A, G, D, F, X, R, Q),
    # What runs but has no valid approval (any more) is approved again to be resumed.
    Action.APPROVE: {P: A, F: A, D: D},
    Action.REJECT: _to(R, P, A),
    Action.DEPLOY: _to(G, A, F),
    Action.ROLLBACK: _to(G, P, A, D, F, R),
    Action.PAUSE: _stays(P, A, G, D, F, R, Q),
    Action.RESUME: _stays(P, A, D, F, R),
    # What runs, or ran lately, is taken away by two people, what does not by one.
    Action.DELETE: _to(E, P, A, F, X, R),
    Action.ASK_DELETION: _to(Q, P, A, D, F, X, R),
    Action.APPROVE_DELETION: _stays(Q),
    Action.REJECT_DELETION: _to(D, Q),
    Action.EXPIRE: _to(P, A),
    Action.GO_LIVE: _to(D, G),
    Action.FAIL: _to(F, G),
    Action.REMOVE: _to(E, Q),
    Action.ROLL_BACK_FAILED: _stays(F),
}


def following(record: FilterRecord, action: Action) -> Status:
    """The status after this action; IllegalTransitionError where there is none."""
    after = LEGAL[action].get(record.status)
    if after is None:
        raise refused(record, SPOKEN.get(action, action.value))
    return after


def refused(record: FilterRecord, spoken: str, why: str = "") -> IllegalTransitionError:
    options = allowed(record)
    return IllegalTransitionError(
        f"{record.id} is {record.status}: it cannot be taken through {spoken} now",
        allowed=options,
        why=why or f"a filter that is {record.status} allows {', '.join(options) or 'nothing'}",
    )


def allowed(record: FilterRecord) -> tuple[str, ...]:
    """What people may do to a filter as it stands."""
    legal = (action for action, moves in LEGAL.items() if record.status in moves)
    possible = (
        action
        for action in legal
        if action not in BY_ITSELF and (record.runs or action not in OF_WHAT_RUNS)
        if action is not Action.PAUSE or not record.paused
    )
    return tuple(dict.fromkeys(SPOKEN.get(action, action.value) for action in possible))
