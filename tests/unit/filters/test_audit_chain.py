"""N5: any changed, dropped, swapped or cut off entry of the audit log is found."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from sqlalchemy import Connection, create_engine, delete, insert, select, update
from tests.support.audit_tampering import TAMPERINGS, read_entries, replace_entry
from tests.support.control_plane import ANN, BOB, ControlPlaneHarness, filter_document
from tests.support.ops_store import create_database

from headgate.cli.main import cli
from headgate.core.identity.api_keys import Keys, KeyStore
from headgate.core.identity.audit import (
    AuditEntry,
    entry_hash,
    exported,
    read_export,
    read_head_text,
    verified,
)
from headgate.core.ledger.tables import api_keys, git_identities
from headgate.errors import UsageError
from headgate.filters.git.repository import HEADGATE, Commit, GitIdentity
from headgate.filters.store.control import ControlStore
from headgate.filters.store.tables import approvals, filter_versions, filters


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store in which some things happened."""
    path = create_database(tmp_path_factory.mktemp("audit") / "ops.db")
    harness = ControlPlaneHarness(path)
    for n in range(6):
        record = harness.service.create(ANN, filter_document(f"f{n}"))
        harness.service.approve(BOB, record.id, record.revision, "fine")
        harness.service.reject(BOB, record.id, "not any more")
        harness.service.update(ANN, record.id, filter_document(f"f{n}", "other"))
    harness.store.close()
    return path


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
        harness = ControlPlaneHarness(copy)
        found += not verified(*harness.store.part(ControlStore).audit_chain()).is_sound
        harness.store.close()
    return found


def test_an_untouched_log_is_sound(written: Path) -> None:
    verdict = verified(*ControlPlaneHarness(written).store.part(ControlStore).audit_chain())
    assert (verdict.entries, verdict.breaks) == (24, ())


def test_tampering_is_found_in_100_of_100_logs(written: Path, tmp_path: Path) -> None:
    assert found_of(written, tmp_path, 100) == 100


@pytest.mark.slow
def test_tampering_is_found_in_1000_of_1000_logs(written: Path, tmp_path: Path) -> None:
    assert found_of(written, tmp_path, 1000) == 1000


def test_a_log_that_was_written_anew_is_found_by_a_head_that_was_written_down(
    written: Path,
) -> None:
    entries, head = ControlPlaneHarness(written).store.part(ControlStore).audit_chain()
    forged: list[AuditEntry] = []
    for entry in entries[:10]:
        previous = forged[-1].hash if forged else entry.previous
        changed = replace(entry, previous=previous, actor="mallory", hash="")
        forged.append(replace(changed, hash=entry_hash(changed)))
    end = replace(head, seq=10, hash=forged[-1].hash)
    assert verified(forged, end).is_sound
    assert not verified(forged, end, head).is_sound


def test_an_exported_log_is_checked_without_the_store(written: Path) -> None:
    entries, head = ControlPlaneHarness(written).store.part(ControlStore).audit_chain()
    lines = list(exported(entries, head))
    assert verified(*read_export(lines)).is_sound
    assert not verified(*read_export(lines[:-1])).is_sound
    assert not verified(*read_export(lines[:5] + lines[6:])).is_sound
    assert not verified(*read_export([line.replace("ann", "eve") for line in lines])).is_sound
    with pytest.raises(UsageError, match="line 3"):
        read_export([*lines[:2], "no entry", *lines[2:]])


@pytest.mark.parametrize(
    "text",
    [
        "17",
        f"\u00b2:{'a' * 64}",
        f"\u0661:{'a' * 64}",
        f"1:{'A' * 64}",
        f"{'9' * 30}:{'a' * 64}",
        "",
    ],
)
def test_a_head_is_a_number_and_a_hash(text: str) -> None:
    with pytest.raises(UsageError):
        read_head_text(text)


def test_a_head_that_others_commit_is_not_taken_for_ours() -> None:
    body = f"x\n\nAudit-Head: 99:{'a' * 64}"
    ours = Commit("1", "ann", None, "x", "a@x", HEADGATE, body)
    assert ours.audit_head == f"99:{'a' * 64}"
    assert replace(ours, committer=GitIdentity("Eve", "e@x")).audit_head is None


def rename_an_approver(db: Connection) -> None:
    db.execute(update(approvals).values(by="mallory"))


def revive_an_approval(db: Connection) -> None:
    db.execute(update(approvals).values(void=""))


def add_an_approval(db: Connection) -> None:
    row = db.execute(select(approvals).limit(1)).mappings().one()
    db.execute(insert(approvals).values(**{**row, "id": "0" * 32, "version": 2}))


def empty_the_authors(db: Connection) -> None:
    db.execute(update(filter_versions).values(authors=[]))


def replace_a_document(db: Connection) -> None:
    db.execute(update(filter_versions).where(filter_versions.c.version == 1).values(document={}))


def replace_what_is_newest(db: Connection) -> None:
    db.execute(update(filters).values(document={}))


def name_another_approver(db: Connection) -> None:
    db.execute(update(filters).values(approved_by="mallory"))


def drop_a_version(db: Connection) -> None:
    db.execute(delete(filter_versions).where(filter_versions.c.version == 1))


def drop_all_approvals(db: Connection) -> None:
    db.execute(delete(approvals))


def give_a_key_another_secret(db: Connection) -> None:
    db.execute(update(api_keys).values(hash="0" * 64))


def give_a_key_another_role(db: Connection) -> None:
    db.execute(update(api_keys).values(roles=["admin"]))


def revive_a_key(db: Connection) -> None:
    db.execute(update(api_keys).values(revoked_at=None))


def add_a_key(db: Connection) -> None:
    row = db.execute(select(api_keys).limit(1)).mappings().one()
    db.execute(insert(api_keys).values(**{**row, "id": "mallory"}))


def drop_the_keys(db: Connection) -> None:
    db.execute(delete(api_keys))


def take_an_identity(db: Connection) -> None:
    db.execute(update(git_identities).values(name="mallory"))


def drop_an_identity(db: Connection) -> None:
    db.execute(delete(git_identities))


@pytest.mark.parametrize(
    "tamper",
    [
        rename_an_approver,
        revive_an_approval,
        add_an_approval,
        empty_the_authors,
        replace_a_document,
        replace_what_is_newest,
        name_another_approver,
        drop_a_version,
        drop_all_approvals,
        give_a_key_another_secret,
        give_a_key_another_role,
        revive_a_key,
        add_a_key,
        drop_the_keys,
        take_an_identity,
        drop_an_identity,
    ],
)
def test_rows_that_are_not_what_the_log_says_are_found(
    written: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    tamper: Callable[[Connection], None],
) -> None:
    """The chain itself stays whole: what is found is that the store says something else."""
    shutil.copy(written, tmp_path / "ops.db")
    monkeypatch.setenv("HEADGATE_HOME", str(tmp_path))
    monkeypatch.setenv("OPS_STORE_URL", f"sqlite:///{tmp_path / 'ops.db'}")
    harness = ControlPlaneHarness(tmp_path / "ops.db")
    keys = Keys(harness.store.part(KeyStore))
    made = keys.create("ann", ["author"], 1, "test")
    keys.revoke(made.key.id, "test")
    keys.identify(keys.create("bob", ["author"], None, "test").secret)
    keys.add_git_identity("ann", "ann@corp.example", "test")
    keys.add_git_identity("ann", "gone@corp.example", "test")
    keys.remove_git_identity("gone@corp.example", "test")
    assert harness.store.part(ControlStore).audit_state()[2] == ()
    assert CliRunner().invoke(cli, ["audit", "verify"]).exit_code == 0
    engine = create_engine(f"sqlite:///{tmp_path / 'ops.db'}")
    with engine.begin() as db:
        tamper(db)
    engine.dispose()
    entries, head, differences = harness.store.part(ControlStore).audit_state()
    assert verified(entries, head).is_sound
    assert differences
    found = CliRunner().invoke(cli, ["audit", "verify"])
    assert type(found.exception).__name__ == "DifferenceError", found.output


def test_rows_from_before_there_were_seals_are_held_against_older_entries(
    written: Path, tmp_path: Path
) -> None:
    shutil.copy(written, tmp_path / "ops.db")
    engine = create_engine(f"sqlite:///{tmp_path / 'ops.db'}")
    with engine.begin() as db:
        for entry in read_entries(db):
            older = {name: value for name, value in entry.detail.items() if name != "sealed"}
            replace_entry(db, replace(entry, detail=older))
    harness = ControlPlaneHarness(tmp_path / "ops.db")
    assert harness.store.part(ControlStore).audit_state()[2] == ()
    with engine.begin() as db:
        rename_an_approver(db)
    engine.dispose()
    assert harness.store.part(ControlStore).audit_state()[2]


def test_every_change_has_its_entry_in_the_same_transaction(tmp_path: Path) -> None:
    harness = ControlPlaneHarness(create_database(tmp_path / "ops.db"))
    record = harness.service.create(ANN, filter_document())
    with (
        pytest.raises(RuntimeError, match="no audit entry"),
        harness.store.part(ControlStore).change() as change,
    ):
        change.save(replace(record, author="mallory"))
    assert harness.service.get("one").author == "ann"
    assert [entry.action for entry in harness.service.audit()] == ["create"]


def test_the_command_checks_exports_and_finds(
    written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(written, tmp_path / "ops.db")
    monkeypatch.setenv("HEADGATE_HOME", str(tmp_path))
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
