"""N5: any changed, dropped, swapped or cut off entry of the audit log is found."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner
from sqlalchemy import Connection, create_engine, delete, insert, select, update
from tests.unit.control.control_room import ANN, BOB, Room, document, make_database

from headgate.cli.main import cli
from headgate.control.audit import exported, read_export, read_head_text, verified
from headgate.errors import UsageError
from headgate.store.audit import entry_hash
from headgate.store.control_model import AuditEntry
from headgate.store.control_tables import audit, audit_head

FIELDS = ("at", "actor", "action", "subject", "detail", "previous", "hash")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store in which some things happened."""
    path = make_database(tmp_path_factory.mktemp("audit") / "ops.db")
    room = Room(path)
    for n in range(6):
        record = room.service.create(ANN, document(f"f{n}"))
        room.service.approve(BOB, record.id, record.revision, "fine")
        room.service.reject(BOB, record.id, "not any more")
        room.service.update(ANN, record.id, document(f"f{n}", "other"))
    room.store.close()
    return path


def entries_of(db: Connection) -> list[AuditEntry]:
    return [AuditEntry(*row) for row in db.execute(select(audit).order_by(audit.c.seq))]


def put(db: Connection, entry: AuditEntry, seq: int | None = None) -> None:
    db.execute(update(audit).where(audit.c.seq == (seq or entry.seq)).values(**vars(entry)))


def other(entry: AuditEntry, name: str, dice: random.Random) -> AuditEntry:
    """The entry with something else in one field."""
    if name == "at":
        return replace(entry, at=entry.at + timedelta(microseconds=dice.randint(1, 10**9)))
    if name == "detail":
        return replace(entry, detail={**entry.detail, "version": dice.randint(100, 999)})
    text = str(getattr(entry, name))
    place = dice.randrange(len(text))
    letter = dice.choice([c for c in "0123456789abcdef" if c != text[place]])
    return replace(entry, **{name: text[:place] + letter + text[place + 1 :]})


def change_one(db: Connection, dice: random.Random) -> None:
    put(db, other(dice.choice(entries_of(db)), dice.choice(FIELDS), dice))


def change_one_and_hash_it_again(db: Connection, dice: random.Random) -> None:
    changed = other(dice.choice(entries_of(db)), dice.choice(FIELDS[:-1]), dice)
    put(db, replace(changed, hash=entry_hash(changed)))


def drop_one(db: Connection, dice: random.Random) -> None:
    db.execute(delete(audit).where(audit.c.seq == dice.choice(entries_of(db)).seq))


def drop_one_and_close_ranks(db: Connection, dice: random.Random) -> None:
    gone = dice.choice(entries_of(db)).seq
    db.execute(delete(audit).where(audit.c.seq == gone))
    for entry in entries_of(db):
        if entry.seq > gone:
            put(db, replace(entry, seq=entry.seq - 1), entry.seq)


def swap_two(db: Connection, dice: random.Random) -> None:
    one, two = dice.sample(entries_of(db), 2)
    db.execute(delete(audit).where(audit.c.seq.in_((one.seq, two.seq))))
    db.execute(insert(audit).values(**vars(replace(one, seq=two.seq))))
    db.execute(insert(audit).values(**vars(replace(two, seq=one.seq))))


def cut_off(db: Connection, dice: random.Random) -> None:
    first = dice.choice(entries_of(db)).seq
    db.execute(delete(audit).where(audit.c.seq >= first))


def forget_the_head(db: Connection, dice: random.Random) -> None:
    db.execute(delete(audit_head))


def add_one(db: Connection, dice: random.Random) -> None:
    last = entries_of(db)[-1]
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


def found_of(written: Path, folder: Path, chains: int) -> int:
    """In how many of so many tampered chains something was found."""
    found = 0
    for seed in range(chains):
        dice = random.Random(seed)
        copy = folder / "copy.db"
        shutil.copy(written, copy)
        engine = create_engine(f"sqlite:///{copy}")
        with engine.begin() as db:
            TAMPERINGS[seed % len(TAMPERINGS)](db, dice)
        engine.dispose()
        room = Room(copy)
        found += not verified(*room.store.control.audit_chain()).is_sound
        room.store.close()
    return found


def test_an_untouched_log_is_sound(written: Path) -> None:
    verdict = verified(*Room(written).store.control.audit_chain())
    assert (verdict.entries, verdict.breaks) == (24, ())


def test_tampering_is_found_in_100_of_100_logs(written: Path, tmp_path: Path) -> None:
    assert found_of(written, tmp_path, 100) == 100


@pytest.mark.slow
def test_tampering_is_found_in_1000_of_1000_logs(written: Path, tmp_path: Path) -> None:
    assert found_of(written, tmp_path, 1000) == 1000


def test_a_log_that_was_written_anew_is_found_by_a_head_that_was_written_down(
    written: Path,
) -> None:
    entries, head = Room(written).store.control.audit_chain()
    forged: list[AuditEntry] = []
    for entry in entries[:10]:
        previous = forged[-1].hash if forged else entry.previous
        changed = replace(entry, previous=previous, actor="mallory", hash="")
        forged.append(replace(changed, hash=entry_hash(changed)))
    end = replace(head, seq=10, hash=forged[-1].hash)
    assert verified(forged, end).is_sound
    assert not verified(forged, end, head).is_sound


def test_an_exported_log_is_checked_without_the_store(written: Path) -> None:
    entries, head = Room(written).store.control.audit_chain()
    lines = list(exported(entries, head))
    assert verified(*read_export(lines)).is_sound
    assert not verified(*read_export(lines[:-1])).is_sound
    assert not verified(*read_export(lines[:5] + lines[6:])).is_sound
    assert not verified(*read_export([line.replace("ann", "eve") for line in lines])).is_sound
    with pytest.raises(UsageError, match="line 3"):
        read_export([*lines[:2], "no entry", *lines[2:]])


def test_a_head_is_a_number_and_a_hash() -> None:
    with pytest.raises(UsageError):
        read_head_text("17")


def test_every_change_has_its_entry_in_the_same_transaction(tmp_path: Path) -> None:
    room = Room(make_database(tmp_path / "ops.db"))
    record = room.service.create(ANN, document())
    with pytest.raises(RuntimeError, match="no audit entry"), room.store.control.change() as change:
        change.save(replace(record, author="mallory"))
    assert room.service.get("one").author == "ann"
    assert [entry.action for entry in room.service.audit()] == ["create"]


def test_the_command_checks_exports_and_finds(
    written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(written, tmp_path / "ops.db")
    monkeypatch.setenv("OPS_STORE_URL", f"sqlite:///{tmp_path / 'ops.db'}")
    run = CliRunner().invoke
    sound = run(cli, ["audit", "verify"])
    assert (sound.exit_code, "24 entries" in sound.output) == (0, True)
    assert run(cli, ["audit", "export", "--out", str(tmp_path / "log.jsonl")]).exit_code == 0
    assert run(cli, ["audit", "verify", "--file", str(tmp_path / "log.jsonl")]).exit_code == 0
    listed = run(cli, ["-o", "json", "audit", "list", "--filter", "f2", "--limit", "1"])
    assert '"update"' in listed.output
    (tmp_path / "log.jsonl").write_text((tmp_path / "log.jsonl").read_text().replace("ann", "eve"))
    broken = run(cli, ["audit", "verify", "--file", str(tmp_path / "log.jsonl")])
    assert type(broken.exception).__name__ == "DifferenceError"
