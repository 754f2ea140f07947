from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import event
from sqlalchemy.exc import IntegrityError
from tests.support.clock import ManualClock
from tests.support.ops_store import load_tables

from headgate.cli import main
from headgate.core.ledger import database
from headgate.core.ledger.database import HEAD, MIGRATIONS, make_private_file
from headgate.core.ledger.model import JobSpec
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.ledger.tables import metadata
from headgate.errors import SettingsError, UnavailableError


def test_head_names_the_newest_migration() -> None:
    newest = max(path.name for path in (MIGRATIONS / "versions").glob("v*.py"))
    assert newest.startswith(f"v{HEAD}_")


def test_a_change_of_the_schema_has_a_new_version() -> None:
    """The one migration creates what the code declares: its number must follow every change."""
    load_tables()
    lines = [
        f"{table.name}.{column.name} {column.type!r} {column.nullable} {column.primary_key}"
        for table in metadata.sorted_tables
        for column in table.columns
    ]
    lines += [
        f"{index.name} {index.unique} {index.columns.keys()} {index.dialect_kwargs.get('sqlite_where')}"
        for table in metadata.sorted_tables
        for index in table.indexes
    ]
    digest = hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()[:12]
    assert (HEAD, digest) == ("0013", "4aba1fa16e26"), (
        "rename the migration, set HEAD and this digest"
    )


def test_an_up_to_date_store_is_opened_without_a_migration(
    store: OpsStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrated: list[object] = []
    monkeypatch.setattr(database, "migrate", migrated.append)
    OpsStore.open(f"sqlite:///{tmp_path / 'ops.db'}").close()
    assert migrated == []


def test_a_store_that_cannot_be_opened_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UnavailableError, match="cannot be opened"):
        OpsStore.open(f"sqlite:///{tmp_path / 'file' / 'ops.db'}")
    with pytest.raises(SettingsError, match="driver"):
        OpsStore.open("nosuchdatabase://localhost/ops")


def test_only_the_owner_may_read_a_store(ops_database: Path, tmp_path: Path) -> None:
    path = tmp_path / "home" / "ops.db"
    before = os.umask(0o022)
    try:
        make_private_file(path)
        assert (mode(path.parent), mode(path)) == (0o700, 0o600)
        shutil.copy(ops_database, path)
        path.chmod(0o644)  # as an earlier version made it
        with OpsStore.open(f"sqlite:///{path}") as store:
            store.note_services_ready()
            assert {mode(file) for file in path.parent.iterdir()} == {0o600}
        path.chmod(0o660)
        OpsStore.open(f"sqlite:///{path}").close()
        assert mode(path) == 0o660, "a group that may write was meant to"
    finally:
        os.umask(before)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def be_folder(path: Path) -> None:
    path.mkdir()


def be_full(path: Path) -> None:
    path.symlink_to("/dev/full")


def be_spoilt(path: Path) -> None:
    path.write_bytes(b"this was a database once" * 400)


@pytest.mark.parametrize("spoil", [be_folder, be_full, be_spoilt])
def test_whatever_is_wrong_with_the_file_is_an_error_in_words(
    tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    spoil(tmp_path / "ops.db")
    with pytest.raises(UnavailableError, match="the ops store cannot be opened") as caught:
        OpsStore.open(f"sqlite:///{tmp_path / 'ops.db'}")
    assert caught.value.why
    assert "space left on the disk" in caught.value.fix


def test_a_store_that_fails_after_it_was_opened_is_an_error_in_words(
    store: OpsStore, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As on a full disk: the command line must not end in a trace."""

    def fail(connection: object) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    def command(**_: object) -> None:
        event.listen(store._engine, "begin", fail)
        store.runs()

    monkeypatch.setattr(main.cli, "main", command)
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert ended.value.code == 8
    told = capsys.readouterr().err
    assert "the ops store did not answer" in told
    assert "disk I/O error" in told


def test_a_fault_of_our_own_keeps_its_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    def command(**_: object) -> None:
        raise IntegrityError("INSERT", {}, Exception("UNIQUE constraint failed"))

    monkeypatch.setattr(main.cli, "main", command)
    with pytest.raises(IntegrityError):
        main.main()


def test_threads_share_one_store(store: OpsStore) -> None:
    def work(lane: int) -> None:
        for _ in range(3):
            store.write_gauge("lane", f"job-{lane}", _)
            store.submit(JobSpec(f"job-{lane}-{_}", "bronze", "orders", "batch", "r"))

    threads = [threading.Thread(target=work, args=(lane,)) for lane in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(store.runs()) == 12


def test_a_revision_is_known_by_its_content(store: OpsStore) -> None:
    one = store.keep_revision("dataset", "orders", {"b": 1, "a": 2})
    same = store.keep_revision("dataset", "orders", {"a": 2, "b": 1})
    assert one == same
    kept = store.revision(one)
    assert kept is not None
    assert (kept.kind, kept.content) == ("dataset", '{"a":2,"b":1}')
    assert store.revision("unknown") is None


def test_the_last_time_at_which_services_were_ready_is_kept(
    store: OpsStore, clock: ManualClock
) -> None:
    assert store.services_ready_at() is None
    store.note_services_ready()
    clock.advance(3)
    store.note_services_ready()
    assert store.services_ready_at() == clock.now


def test_a_gauge_has_its_last_value_for_each_job_and_label(store: OpsStore) -> None:
    store.write_gauge("keys", "one", 1)
    store.write_gauge("keys", "one", 0.25)
    store.write_gauge("keys", "a_b", 2, label="x:y")
    store.write_gauge("keys", "a_b", 3, label="%")
    store.write_gauge("other", "one", 7)
    assert store.gauges("keys") == {("one",): 0.25, ("a_b", "x:y"): 2, ("a_b", "%"): 3}
    assert store.gauges("key_") == {}


def test_probes_of_the_store_hold_no_lease(store: OpsStore) -> None:
    for _ in range(2):
        store.probe_write(1.0)
    assert store.lease("probe") is None


def test_times_without_a_zone_are_refused(store: OpsStore, clock: ManualClock) -> None:
    clock.now = clock.now.replace(tzinfo=None) + timedelta(days=1)
    with pytest.raises(Exception, match="zone"):
        store.note_services_ready()
