"""API keys: created once, shown once, kept as a hash; and the person that each git identity belongs to.

Every change is one transaction with its entry in the audit log. Rows are never deleted, so that "no key was
ever created" stays a safe test for a new store.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Engine, Row, delete, insert, select, update
from sqlalchemy.exc import DBAPIError

from headgate.core.identity.audit import GIT_IDENTITY, AuditEntry, AuditLog, SealedRow
from headgate.core.identity.roles import ROLES, Identity, is_reserved, person
from headgate.core.ledger.database import writing
from headgate.core.ledger.tables import api_keys, git_identities
from headgate.declarations.errors import suggestion
from headgate.errors import NotFoundError, UnauthenticatedError, UsageError

# A key in constant use writes to the store once in this time, not with every request.
USE_NOTED_EVERY = timedelta(minutes=1)


@dataclass(frozen=True)
class ApiKey:
    """A key to the API. Only the hash of its secret is kept."""

    id: str
    name: str
    hash: str
    roles: tuple[str, ...]
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None

    @property
    def seal_key(self) -> str:
        return f"key:{self.id}"

    def is_mentioned_in(self, entries: Iterable[AuditEntry]) -> bool:
        about = (entry for entry in entries if entry.subject == self.seal_key)
        return any(entry.detail.get("name") == self.name for entry in about)


@dataclass(frozen=True)
class OwnedGitIdentity:
    """A mail address or a name that somebody commits under, in one spelling, and who that is."""

    identity: str
    name: str

    @property
    def seal_key(self) -> str:
        return f"{GIT_IDENTITY}{self.identity}"

    def is_mentioned_in(self, entries: Iterable[AuditEntry]) -> bool:
        return False


class KeyStore:
    """The keys of this ops store; rows are never deleted, so that the first key is made once."""

    def __init__(self, engine: Engine, clock: Callable[[], datetime]) -> None:
        self._engine, self._clock = engine, clock
        self._log = AuditLog(engine, clock)

    def now(self) -> datetime:
        return self._clock()

    def add(self, key: ApiKey, by: str) -> None:
        with self._log.change() as change:
            change.db.execute(insert(api_keys).values(**vars(key)))
            change.seal(key)
            change.audit(by, "create_key", f"key:{key.id}", name=key.name, roles=list(key.roles))

    def find(self, id: str) -> ApiKey | None:
        with self._engine.connect() as db:
            row = db.execute(select(api_keys).where(api_keys.c.id == id)).one_or_none()
        return _key(row) if row else None

    def every(self) -> tuple[ApiKey, ...]:
        """All keys, the oldest first, revoked and expired ones too."""
        query = select(api_keys).order_by(api_keys.c.created_at, api_keys.c.id)
        with self._engine.connect() as db:
            return tuple(_key(row) for row in db.execute(query))

    def any(self) -> bool:
        """Whether a key was ever made."""
        with self._engine.connect() as db:
            return db.execute(select(api_keys.c.id).limit(1)).first() is not None

    def revoke(self, id: str, by: str) -> None:
        """It no longer holds; one that was revoked before keeps its time."""
        standing = (api_keys.c.id == id, api_keys.c.revoked_at.is_(None))
        with self._log.change() as change:
            row = change.db.execute(select(api_keys).where(*standing)).one_or_none()
            if row is not None:
                revoked = update(api_keys).where(*standing).values(revoked_at=change.now)
                change.db.execute(revoked)
                change.seal(replace(_key(row), revoked_at=change.now))
                change.audit(by, "revoke_key", f"key:{id}")

    def git_identities(self) -> tuple[OwnedGitIdentity, ...]:
        """Whose each declared identity of git is, by identity."""
        query = select(git_identities).order_by(git_identities.c.identity)
        with self._engine.connect() as db:
            return tuple(OwnedGitIdentity(*row) for row in db.execute(query))

    def add_git_identity(self, owned: OwnedGitIdentity, by: str) -> None:
        """Declare whose an identity of git is; one that was somebody else's changes hands."""
        with self._log.change() as change:
            mine = git_identities.c.identity == owned.identity
            change.db.execute(delete(git_identities).where(mine))
            change.db.execute(insert(git_identities).values(**vars(owned)))
            change.seal(owned)
            change.audit(by, "add_git_identity", owned.identity, name=owned.name)

    def remove_git_identity(self, identity: str, by: str) -> bool:
        """Let an identity of git be nobody's again; whether it was somebody's."""
        with self._log.change() as change:
            mine = git_identities.c.identity == identity
            removed = change.db.execute(delete(git_identities).where(mine)).rowcount > 0
            if removed:
                change.seal(OwnedGitIdentity(identity, ""))
                change.audit(by, "remove_git_identity", identity)
        return removed

    def used(self, key: ApiKey) -> None:
        """Note that the key was used now, unless the store is busy, full or read-only.

        A request that only reads must neither wait for a writer nor fail for this.
        """
        now = self._clock()
        if key.last_used_at is None or now - key.last_used_at >= USE_NOTED_EVERY:
            with suppress(DBAPIError), writing(self._engine, lock_seconds=0) as db:
                used = update(api_keys).where(api_keys.c.id == key.id)
                db.execute(used.values(last_used_at=now))


def sealed_rows(db: Connection) -> Iterator[SealedRow]:
    """Every row whose hash the audit log must have: keys, and whose each identity of git is."""
    yield from (_key(row) for row in db.execute(select(api_keys)))
    yield from (OwnedGitIdentity(*row) for row in db.execute(select(git_identities)))


def _key(row: Row[Any]) -> ApiKey:
    return ApiKey(
        id=row.id,
        name=row.name,
        hash=row.hash,
        roles=tuple(row.roles),
        created_at=row.created_at,
        expires_at=row.expires_at,
        revoked_at=row.revoked_at,
        last_used_at=row.last_used_at,
    )


PREFIX = "hg_"
ID_LENGTH = 12
LONGEST_IDENTITY = 200
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

    def git_identities(self) -> tuple[OwnedGitIdentity, ...]:
        """Whose each declared identity of git is."""
        return self._store.git_identities()

    def add_git_identity(self, name: str, identity: str, by: str) -> OwnedGitIdentity:
        """Say who commits under a mail address or a name of git."""
        _check_name(name)
        owned = OwnedGitIdentity(_git_identity(identity), name)
        self._store.add_git_identity(owned, by)
        return owned

    def remove_git_identity(self, identity: str, by: str) -> None:
        """Let an identity of git be nobody's again; NotFoundError when it was nobody's."""
        if not self._store.remove_git_identity(_git_identity(identity), by):
            known = [one.identity for one in self._store.git_identities()]
            fix = suggestion(identity, known, "identities")
            raise NotFoundError(f"{identity} is nobody's identity in git", fix=fix)

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


def key_id_in(credentials: str) -> str | None:
    """The id in a text that has the form of a key; it says nothing of whether the key holds."""
    form = _FORM.fullmatch(credentials)
    return form[1] if form else None


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


def _git_identity(text: str) -> str:
    """A mail address or a name as commits are compared with it."""
    identity = person(text.strip().strip("<>"))
    if not 0 < len(identity) <= LONGEST_IDENTITY or not identity.isprintable():
        raise UsageError(
            "this is no identity of git",
            fix="give a mail address or a name as `git log --format='%an %ae'` shows it",
        )
    return identity


def _check_name(name: str) -> None:
    if not name or person(name) != name or not name.isprintable() or len(name) > LONGEST_IDENTITY:
        raise UsageError(
            "the name is not one of a key or a token",
            fix="write it as `headgate keys list` or the audit log shows it",
        )
    if is_reserved(name):
        raise UsageError(f"{name} is what Headgate calls itself", fix="choose another name")


def _check(name: str, roles: Sequence[str], days: float | None) -> None:
    if not NAME.fullmatch(name):
        raise UsageError(
            "the name of a key is a person's or a program's",
            fix="use small letters, digits and @ . _ -, at most 100",
        )
    _check_name(name)
    if not roles:
        raise UsageError(
            "a key without a role may do nothing", fix=f"give one of {', '.join(ROLES)}"
        )
    for role in roles:
        if role not in ROLES:
            raise UsageError(f"{role} is no role", fix=suggestion(role, ROLES, "roles"))
    if days is not None and not 0 < days <= 3650:
        raise UsageError("a key lasts more than 0 and at most 3650 days")
