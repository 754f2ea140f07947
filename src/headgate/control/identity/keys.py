"""API keys: made once, shown once, kept as a hash."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from headgate.control.identity.model import ROLES, Identity, is_reserved
from headgate.errors import NotFoundError, UnauthenticatedError, UsageError
from headgate.spec.refusal import suggestion
from headgate.store.control_model import ApiKey
from headgate.store.keys import KeyStore

PREFIX = "hg_"
ID_LENGTH = 12
NAME = re.compile(r"[a-z0-9][a-z0-9@._-]{0,99}")
_FORM = re.compile(rf"{PREFIX}([a-z0-9]{{{ID_LENGTH}}})_([A-Za-z0-9_-]{{43}})")
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
# What an unknown id is compared with, so that it takes as long as a known one.
_NO_HASH = hashlib.sha256(b"").hexdigest()


@dataclass(frozen=True)
class MadeKey:
    """A new key with its secret: the only time that it is seen."""

    key: ApiKey
    secret: str

    def __repr__(self) -> str:
        return f"MadeKey({self.key.id})"


class Keys:
    """Makes, recognises and revokes keys."""

    def __init__(self, store: KeyStore) -> None:
        self._store = store

    def create(self, name: str, roles: Sequence[str], days: float | None, by: str) -> MadeKey:
        """A new key of somebody. The name is who they are: two keys of one name are one person."""
        _check(name, roles, days)
        now = self._store.now()
        id = "".join(secrets.choice(_LETTERS) for _ in range(ID_LENGTH))
        words = secrets.token_urlsafe(32)
        until = None if days is None else now + timedelta(days=days)
        key = ApiKey(id, name, _hash(words), tuple(sorted(set(roles))), now, until)
        self._store.add(key, by)
        return MadeKey(key, f"{PREFIX}{id}_{words}")

    def any(self) -> bool:
        return self._store.any()

    def every(self) -> tuple[ApiKey, ...]:
        return self._store.every()

    def revoke(self, id: str, by: str) -> ApiKey:
        """The key, which holds no longer from now on."""
        bare = id.removeprefix(PREFIX)[:ID_LENGTH]
        self._store.revoke(bare, by)
        found = self._store.find(bare)
        if found is None:
            known = [key.id for key in self._store.every()]
            raise NotFoundError("there is no key of this id", fix=suggestion(bare, known, "keys"))
        return found

    def identify(self, credentials: str) -> Identity:
        """Whose key this is; UnauthenticatedError unless it holds."""
        form = _FORM.fullmatch(credentials)
        key = self._store.find(form[1]) if form else None
        same = hmac.compare_digest(_hash(form[2] if form else ""), key.hash if key else _NO_HASH)
        if key is None or not same:
            raise _refused("it is not known here")
        if state(key, self._store.now()) != "active":
            raise _refused(f"it is {state(key, self._store.now())}")
        self._store.used(key)
        return Identity(key.name, frozenset(key.roles), key.id)


def state(key: ApiKey, now: datetime) -> str:
    """Whether a key holds: active, revoked or expired."""
    if key.revoked_at is not None:
        return "revoked"
    return "expired" if key.expires_at is not None and now >= key.expires_at else "active"


def _hash(secret: str) -> str:
    # 256 random bits need no slow hash: there is nothing to guess.
    return hashlib.sha256(secret.encode()).hexdigest()


def _refused(why: str) -> UnauthenticatedError:
    return UnauthenticatedError(
        "the key does not hold", why=why, fix="make another one with: headgate keys create"
    )


def _check(name: str, roles: Sequence[str], days: float | None) -> None:
    if not NAME.fullmatch(name):
        raise UsageError(
            "the name of a key is a person's or a program's",
            fix="use small letters, digits and @ . _ -, at most 100",
        )
    if is_reserved(name):
        raise UsageError(f"{name} is what Headgate calls itself", fix="choose another name")
    if not roles:
        raise UsageError(
            "a key without a role may do nothing", fix=f"give one of {', '.join(ROLES)}"
        )
    for role in roles:
        if role not in ROLES:
            raise UsageError(f"{role} is no role", fix=suggestion(role, ROLES, "roles"))
    if days is not None and not 0 < days <= 3650:
        raise UsageError("a key lasts more than 0 and at most 3650 days")
