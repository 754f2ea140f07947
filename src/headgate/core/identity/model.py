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
