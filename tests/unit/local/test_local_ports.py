"""A port is reserved for one service of one stack, as long as that stack runs."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from headgate.core.runtime.ports import any_port
from headgate.errors import ConflictError, UnavailableError
from headgate.local import process
from headgate.local.process import lock_folder, release_ports, reserve_port


@pytest.fixture(autouse=True)
def locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(process, "lock_folder", lambda: tmp_path)
    yield tmp_path
    for service in ("broker", "engine"):
        release_ports(service)


@contextmanager
def lock_elsewhere(folder: Path, port: int) -> Iterator[None]:
    """What another stack does: a lock belongs to the open file, also within one process."""
    with (folder / f"{port}.lock").open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield


def test_a_port_that_another_stack_reserved_is_passed_over_though_nobody_listens_yet(locks):
    port = any_port()
    with lock_elsewhere(locks, port):
        assert reserve_port("broker", port, "KAFKA_PORT") > port
    assert reserve_port("engine", port, "CONNECT_PORT") == port


def test_a_reserved_port_is_locked_against_every_other_stack(locks):
    port = reserve_port("broker", any_port(), "KAFKA_PORT")
    with (locks / f"{port}.lock").open("a") as handle, pytest.raises(BlockingIOError):
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)


def test_a_named_port_that_another_stack_reserved_is_refused(locks):
    port = any_port()
    with lock_elsewhere(locks, port), pytest.raises(ConflictError, match=f"port {port} is in use"):
        reserve_port("broker", port, "KAFKA_PORT", exact=True)


def test_a_reserved_port_is_not_given_away_until_it_is_released(locks):
    port = reserve_port("broker", 0, "KAFKA_PORT")
    assert reserve_port("engine", port, "CONNECT_PORT") != port
    with pytest.raises(BlockingIOError), lock_elsewhere(locks, port):
        pass
    release_ports("broker")
    with lock_elsewhere(locks, port):
        pass
    assert reserve_port("engine", port, "CONNECT_PORT", exact=True) == port


def test_the_locks_of_a_user_are_in_one_folder_of_that_user(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    folder = lock_folder()
    assert not folder.is_relative_to(tmp_path)
    assert folder.stat().st_mode & 0o077 == 0
    monkeypatch.setattr(process.os, "geteuid", lambda: 4_000_000_001)
    try:
        with pytest.raises(UnavailableError, match="ports cannot be reserved"):
            lock_folder()
    finally:
        Path("/tmp/headgate-ports-4000000001").rmdir()
