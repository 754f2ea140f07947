"""The table of operations: who may do what. An operation that is not here cannot be served."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headgate.core.identity.model import Identity, Role
from headgate.errors import ForbiddenError, UnauthenticatedError

ADMIN = frozenset({Role.ADMIN})
READERS = frozenset(Role) - {Role.PRODUCER}
AUTHORS = ADMIN | {Role.AUTHOR}
APPROVERS = ADMIN | {Role.APPROVER}
DEPLOYERS = ADMIN | {Role.DEPLOYER}
OPERATORS = ADMIN | {Role.OPERATOR}
AUDITORS = ADMIN | {Role.AUDITOR}
PRODUCERS = ADMIN | {Role.PRODUCER}

# Answered to anybody: they say that the server lives, never what it holds.
PUBLIC = frozenset({"livez", "readyz", "version", "openapi", "describeError"})

OPERATIONS: Mapping[str, frozenset[str]] = {
    # Filters: read
    "listFilters": READERS,
    "getFilter": READERS,
    "generateFilter": READERS,
    "validateFilter": READERS,
    "validateDocument": READERS,
    "dryRunFilter": READERS,
    "dryRunDocument": READERS,
    "filterStatus": READERS,
    "filterRevisions": READERS,
    "filterDiff": READERS,
    "filterLedger": READERS,
    "schemaFields": READERS,
    # Filters: change
    "createFilter": AUTHORS,
    # Authors write; to turn off what runs is the right of those who may pause (control/service.py).
    "updateFilter": AUTHORS | DEPLOYERS | OPERATORS,
    "deleteFilter": AUTHORS,
    "approveFilter": APPROVERS,
    "rejectFilter": APPROVERS,
    "deployFilter": DEPLOYERS,
    "rollbackFilter": DEPLOYERS | OPERATORS,
    "pauseFilter": DEPLOYERS | OPERATORS,
    "resumeFilter": DEPLOYERS | OPERATORS,
    # Operations and what happened
    "listOperations": READERS,
    "getOperation": READERS,
    "listAudit": AUDITORS,
    "streamEvents": READERS,
    "listDrift": READERS,
    "mendDrift": OPERATORS,
    "metrics": READERS,
    # Events of the source (api/events.py)
    "postEvent": PRODUCERS,
    "postEvents": PRODUCERS,
    "eventsHealth": READERS | PRODUCERS,
    # Dead letters (api/dlq.py)
    "listDeadLetters": READERS,
    "groupDeadLetters": READERS,
    "getDeadLetter": OPERATORS | AUDITORS,
    "planRedrive": OPERATORS,
    "redriveDeadLetters": OPERATORS,
    "getRedrive": READERS,
}

# Reads that may be answered while no key exists yet (loopback only). Everything else needs a key.
READS = frozenset(
    {
        "listFilters", "getFilter", "generateFilter", "validateFilter", "validateDocument",
        "dryRunFilter", "dryRunDocument", "filterStatus", "filterRevisions", "filterDiff",
        "filterLedger", "schemaFields", "listOperations", "getOperation", "listAudit",
        "streamEvents", "listDrift", "metrics", "listDeadLetters",
        "groupDeadLetters", "getDeadLetter", "getRedrive", "eventsHealth",
    }
)  # fmt: skip


def may(identity: Identity, operation: str) -> bool:
    """Whether one of the identity's roles stands in the operation's row."""
    return identity.has(OPERATIONS[operation])


def require(identity: Identity, operation: str) -> None:
    """ForbiddenError that names the roles, unless the identity may do this."""
    if not may(identity, operation):
        raise ForbiddenError(
            f"{identity.name} may not do {operation}",
            why=f"it has the roles {_listed(identity.roles) or 'none'}",
            fix=f"it takes one of {_listed(OPERATIONS[operation])}",
        )


def require_before_the_first_key(operation: str) -> None:
    """A new store answers reads; UnauthenticatedError for every change."""
    if operation not in READS:
        raise UnauthenticatedError(
            "nothing can be changed while no key exists",
            why=f"{operation} needs an identity",
            fix="on the machine of the ops store: headgate keys create <name> --role admin",
        )


def _listed(roles: Iterable[str]) -> str:
    return ", ".join(sorted(str(role) for role in roles))
