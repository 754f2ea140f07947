"""API keys by their hash: who holds them, for what, until when."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Engine, Row, delete, insert, select, update
from sqlalchemy.exc import DBAPIError

from headgate.core.ledger.database import writing
from headgate.filters.store.control import ControlStore
from headgate.filters.store.control_model import ApiKey, OwnedGitIdentity
from headgate.filters.store.control_tables import api_keys, git_identities

# A key in constant use writes to the store once in this time, not with every request.
USE_NOTED_EVERY = timedelta(minutes=1)


class KeyStore:
    """The keys of this ops store; rows are never deleted, so that the first key is made once."""

    def __init__(self, engine: Engine, clock: Callable[[], datetime]) -> None:
        self._engine, self._clock = engine, clock
        self._control = ControlStore(engine, clock)

    def now(self) -> datetime:
        return self._clock()

    def add(self, key: ApiKey, by: str) -> None:
        with self._control.change() as change:
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
        with self._control.change() as change:
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
        with self._control.change() as change:
            mine = git_identities.c.identity == owned.identity
            change.db.execute(delete(git_identities).where(mine))
            change.db.execute(insert(git_identities).values(**vars(owned)))
            change.seal(owned)
            change.audit(by, "add_git_identity", owned.identity, name=owned.name)

    def remove_git_identity(self, identity: str, by: str) -> bool:
        """Let an identity of git be nobody's again; whether it was somebody's."""
        with self._control.change() as change:
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
