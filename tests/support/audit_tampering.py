"""Ways to tamper with the audit log in its database, behind the back of the store."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta

from sqlalchemy import Connection, delete, insert, select, update

from headgate.core.identity.audit import FIRST, AuditEntry, entry_hash
from headgate.core.ledger.tables import audit, audit_head

FIELDS = ("at", "actor", "action", "subject", "detail", "previous", "hash")


def read_entries(db: Connection) -> list[AuditEntry]:
    """All entries of the log, by sequence number."""
    return [AuditEntry(*row) for row in db.execute(select(audit).order_by(audit.c.seq))]


def replace_entry(db: Connection, entry: AuditEntry, seq: int | None = None) -> None:
    """Overwrite the entry at `seq`, or at the entry's own number."""
    db.execute(update(audit).where(audit.c.seq == (seq or entry.seq)).values(**vars(entry)))


def alter_field(entry: AuditEntry, name: str, dice: random.Random) -> AuditEntry:
    """A copy of the entry with another value in one field."""
    if name == "at":
        return replace(entry, at=entry.at + timedelta(microseconds=dice.randint(1, 10**9)))
    if name == "detail":
        return replace(entry, detail={**entry.detail, "version": dice.randint(100, 999)})
    text = str(getattr(entry, name))
    place = dice.randrange(len(text))
    letter = dice.choice([c for c in "0123456789abcdef" if c != text[place]])
    return replace(entry, **{name: text[:place] + letter + text[place + 1 :]})


def change_one(db: Connection, dice: random.Random) -> None:
    replace_entry(db, alter_field(dice.choice(read_entries(db)), dice.choice(FIELDS), dice))


def change_one_and_hash_it_again(db: Connection, dice: random.Random) -> None:
    changed = alter_field(dice.choice(read_entries(db)), dice.choice(FIELDS[:-1]), dice)
    replace_entry(db, replace(changed, hash=entry_hash(changed)))


def drop_one(db: Connection, dice: random.Random) -> None:
    db.execute(delete(audit).where(audit.c.seq == dice.choice(read_entries(db)).seq))


def drop_one_and_close_ranks(db: Connection, dice: random.Random) -> None:
    gone = dice.choice(read_entries(db)).seq
    db.execute(delete(audit).where(audit.c.seq == gone))
    for entry in read_entries(db):
        if entry.seq > gone:
            replace_entry(db, replace(entry, seq=entry.seq - 1), entry.seq)


def swap_two(db: Connection, dice: random.Random) -> None:
    one, two = dice.sample(read_entries(db), 2)
    db.execute(delete(audit).where(audit.c.seq.in_((one.seq, two.seq))))
    db.execute(insert(audit).values(**vars(replace(one, seq=two.seq))))
    db.execute(insert(audit).values(**vars(replace(two, seq=one.seq))))


def cut_off(db: Connection, dice: random.Random) -> None:
    first = dice.choice(read_entries(db)).seq
    db.execute(delete(audit).where(audit.c.seq >= first))


def forget_the_head(db: Connection, dice: random.Random) -> None:
    db.execute(delete(audit_head))


def add_one(db: Connection, dice: random.Random) -> None:
    last = read_entries(db)[-1]
    more = replace(last, seq=last.seq + 1, previous=last.hash, actor="mallory")
    db.execute(insert(audit).values(**vars(replace(more, hash=entry_hash(more)))))


TAMPERINGS: tuple[Callable[[Connection, random.Random], None], ...] = (
    change_one,
    change_one_and_hash_it_again,
    drop_one,
    drop_one_and_close_ranks,
    swap_two,
    cut_off,
    forget_the_head,
    add_one,
)


def forge_entries(entries: Sequence[AuditEntry]) -> list[AuditEntry]:
    """The same entries under another actor, hashed as the store would hash them."""
    made: list[AuditEntry] = []
    for entry in entries:
        previous = made[-1].hash if made else FIRST
        changed = replace(entry, previous=previous, actor="mallory", hash="")
        made.append(replace(changed, hash=entry_hash(changed)))
    return made


def delete_everything(db: Connection) -> None:
    db.execute(delete(audit))
    db.execute(delete(audit_head))


def cut_off_and_set_the_head(db: Connection) -> None:
    kept = read_entries(db)[:-3]
    db.execute(delete(audit).where(audit.c.seq > kept[-1].seq))
    db.execute(update(audit_head).values(seq=kept[-1].seq, hash=kept[-1].hash))


def rewrite_everything(db: Connection) -> None:
    made = forge_entries(read_entries(db))
    db.execute(delete(audit))
    for entry in made:
        db.execute(insert(audit).values(**vars(entry)))
    db.execute(update(audit_head).values(seq=made[-1].seq, hash=made[-1].hash))
