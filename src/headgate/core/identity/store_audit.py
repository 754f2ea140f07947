"""The audit log: a chain in which every entry holds the hash of the one before.

The entry's hash covers all its fields, so that a changed, dropped or swapped entry breaks the chain
where it stood. The head is kept apart: it finds what was cut off at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, insert, select, update

from headgate.core.ledger.canonical import canonical, fingerprint, parse
from headgate.filters.store.control_model import AuditEntry, AuditHead
from headgate.filters.store.control_tables import audit, audit_head

FIRST = "0" * 64
_HEAD_ROW = 1


def append(
    db: Connection,
    at: datetime,
    actor: str,
    action: str,
    subject: str,
    detail: Mapping[str, Any],
) -> AuditEntry:
    """The next entry of the chain, written in the caller's transaction."""
    head = read_head(db)
    # What is hashed is what a reader will get back: plain JSON.
    plain = parse(canonical(detail))
    entry = AuditEntry(head.seq + 1, at, actor, action, subject, plain, head.hash, "")
    entry = replace(entry, hash=entry_hash(entry))
    db.execute(insert(audit).values(**vars(entry)))
    _move_head(db, head, entry)
    return entry


def entry_hash(entry: AuditEntry) -> str:
    values = {**vars(entry), "at": entry.at.astimezone(UTC).isoformat(timespec="microseconds")}
    del values["hash"]
    return fingerprint(canonical(values))


def read_head(db: Connection) -> AuditHead:
    row = db.execute(select(audit_head.c.seq, audit_head.c.hash)).first()
    return AuditHead(row.seq, row.hash) if row else AuditHead(0, FIRST)


def entries(db: Connection, after: int = 0, limit: int | None = None) -> tuple[AuditEntry, ...]:
    query = select(audit).where(audit.c.seq > after).order_by(audit.c.seq).limit(limit)
    return tuple(AuditEntry(*row) for row in db.execute(query))


def of_subject(db: Connection, subject: str) -> tuple[AuditEntry, ...]:
    query = select(audit).where(audit.c.subject == subject).order_by(audit.c.seq)
    return tuple(AuditEntry(*row) for row in db.execute(query))


def breaks(found: Iterable[AuditEntry], head: AuditHead) -> tuple[str, ...]:
    """What is wrong with a whole chain, in words; nothing when it is sound."""
    return tuple(_breaks(found, head))


def _breaks(found: Iterable[AuditEntry], head: AuditHead) -> Iterable[str]:
    seq, hash_ = 0, FIRST
    for entry in found:
        if entry.seq != seq + 1:
            yield f"entry {seq + 1} is not there: {entry.seq} follows {seq}"
        if entry.previous != hash_:
            yield f"entry {entry.seq} does not follow the one before it"
        if entry.hash != entry_hash(entry):
            yield f"entry {entry.seq} was changed"
        seq, hash_ = entry.seq, entry.hash
    if (seq, hash_) != (head.seq, head.hash):
        yield f"the log ends with entry {seq}, its head says {head.seq}"


def _move_head(db: Connection, head: AuditHead, entry: AuditEntry) -> None:
    place = {"seq": entry.seq, "hash": entry.hash}
    if head.seq:
        db.execute(update(audit_head).values(**place))
    else:
        db.execute(insert(audit_head).values(id=_HEAD_ROW, **place))
