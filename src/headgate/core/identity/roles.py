"""Identities, their roles, and the table of operations: who may do what. What is not in the table cannot be served.

One name is one person: names are compared in one spelling (NFKC case folding, without invisible characters), and
names of Headgate's own actors are reserved.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from headgate.errors import ForbiddenError, UnauthenticatedError


class Role(StrEnum):
    """What somebody is there for; `policy.OPERATIONS` says what each may do."""

    VIEWER = "viewer"
    AUTHOR = "author"
    APPROVER = "approver"
    DEPLOYER = "deployer"
    OPERATOR = "operator"
    AUDITOR = "auditor"
    ADMIN = "admin"
    PRODUCER = "producer"


ROLES: tuple[str, ...] = tuple(role.value for role in Role)


@dataclass(frozen=True)
class Identity:
    """A name that came from a key or a token, never from a body; one name is one person.

    `key_id` names the API key; it is empty for a token and for the nameless reader of a new store.
    `peer` is the address that the request came from, where it came over the network.
    """

    name: str
    roles: frozenset[str] = frozenset()
    key_id: str = ""
    peer: str = ""

    def has(self, wanted: Iterable[str]) -> bool:
        """Whether any of these roles is among its own."""
        return not self.roles.isdisjoint(wanted)


NOBODY = Identity("nobody")
# The reconciler, the git store and other parts that act by themselves.
SYSTEM = Identity("system")
# Whoever makes keys on the machine of the ops store, before anybody has one.
LOCAL = "local"


# Stands before a git identity that is nobody's here, among the authors of a version.
UNKNOWN_WRITER = "git:"
# Code points that nobody sees: Default_Ignorable_Code_Point of Unicode, and the blank of Braille.
_UNSEEN = (
    (0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5),
    (0x180B, 0x180F), (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x2800, 0x2800),
    (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8),
    (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
)  # fmt: skip


def has_unseen(name: str) -> bool:
    """Whether a name has characters that nobody sees, so that it looks like another one."""
    return any(_is_unseen(letter) for letter in name)


def _is_unseen(letter: str) -> bool:
    return any(first <= ord(letter) <= last for first, last in _UNSEEN)


def person(name: str) -> str:
    """The one spelling of a name: `Alice@Corp` of a token is `alice@corp` of a key.

    NFKC_Casefold of Unicode: without case, without forms, without what nobody sees.
    """
    seen = "".join(letter for letter in name if not _is_unseen(letter))
    folded = unicodedata.normalize("NFKC", seen).strip().casefold()
    return unicodedata.normalize("NFKC", folded)


def is_reserved(name: str) -> bool:
    """Whether it is, or could be read as, one of our own actors in the audit log."""
    first = person(name).partition(":")[0].strip()
    return first in (NOBODY.name, SYSTEM.name, LOCAL, UNKNOWN_WRITER.removesuffix(":"))


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
    # Authors write; to turn off what runs is the right of those who may pause (filters/control/service.py).
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
    # Events of the source (filters/api/events.py)
    "postEvent": PRODUCERS,
    "postEvents": PRODUCERS,
    "eventsHealth": READERS | PRODUCERS,
    # Dead letters (dead_letters/api.py)
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
