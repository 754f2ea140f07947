"""Leases: who is the active one. Tokens only rise, so that a holder who slept is found out."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, insert, select, update

from headgate.core.ledger.store_model import Lease
from headgate.core.ledger.tables import leases
from headgate.errors import LeaseLostError

NOBODY = ""


def acquire(db: Connection, name: str, holder: str, now: datetime, until: datetime) -> Lease | None:
    held = find(db, name)
    if held is None:
        lease = Lease(name, holder, 1, until)
        db.execute(insert(leases).values(**vars(lease)))
        return lease
    if held.holder not in (holder, NOBODY) and held.expires_at > now:
        return None
    token = held.token if held.holder == holder else held.token + 1
    return _store(db, Lease(name, holder, token, until))


def renew(db: Connection, lease: Lease, until: datetime) -> Lease:
    if not _is_held(db, lease):
        raise LeaseLostError(
            f"the lease {lease.name} is no longer held by {lease.holder}",
            why="another process took it over after it ran out",
            fix="stop this process; the new holder carries on",
        )
    return _store(db, Lease(lease.name, lease.holder, lease.token, until))


def release(db: Connection, lease: Lease, now: datetime) -> None:
    if _is_held(db, lease):
        _store(db, Lease(lease.name, NOBODY, lease.token, now))


def find(db: Connection, name: str) -> Lease | None:
    row = db.execute(select(leases).where(leases.c.name == name)).one_or_none()
    return Lease(row.name, row.holder, row.token, row.expires_at) if row else None


def _is_held(db: Connection, lease: Lease) -> bool:
    held = find(db, lease.name)
    return held is not None and (held.holder, held.token) == (lease.holder, lease.token)


def _store(db: Connection, lease: Lease) -> Lease:
    db.execute(update(leases).where(leases.c.name == lease.name).values(**vars(lease)))
    return lease
