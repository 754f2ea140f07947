"""Who is asking."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


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
    """

    name: str
    roles: frozenset[str] = frozenset()
    key_id: str = ""

    def has(self, wanted: Iterable[str]) -> bool:
        """Whether any of these roles is among its own."""
        return not self.roles.isdisjoint(wanted)


NOBODY = Identity("nobody")
# The reconciler, the git store and other parts that act by themselves.
SYSTEM = Identity("system")
# Whoever makes keys on the machine of the ops store, before anybody has one.
LOCAL = "local"


def person(name: str) -> str:
    """The one spelling of a name: `Alice@Corp` of a token is `alice@corp` of a key."""
    folded = unicodedata.normalize("NFKC", name).strip().casefold()
    return unicodedata.normalize("NFKC", folded)


def is_reserved(name: str) -> bool:
    """Whether it is, or could be read as, one of our own actors in the audit log."""
    return person(name).partition(":")[0].strip() in (NOBODY.name, SYSTEM.name, LOCAL)
