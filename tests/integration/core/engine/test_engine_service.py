"""The engine under its supervisor: killed it comes back where it was, stopped it is not healthy."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.local_commands import LocalEnvironment

from headgate.core.runtime.ports import any_port
from headgate.local.process import wait_until
from headgate.local.state import LocalFiles, LocalState, Phase, ServiceState

READY_SECONDS = 240.0


@pytest.fixture
def local(tmp_path: Path) -> Iterator[LocalEnvironment]:
    local = LocalEnvironment(tmp_path)
    try:
        yield local
    finally:
        local.run("local", "down")


def engine_of(local: LocalEnvironment) -> ServiceState:
    state = LocalFiles(local.home).read_state()
    assert isinstance(state, LocalState)
    engine = state.service("engine")
    assert engine is not None
    return engine


def pid_of(local: LocalEnvironment) -> int:
    pid = engine_of(local).pid
    assert pid is not None
    return pid


def is_healthy(local: LocalEnvironment) -> bool:
    process = local.start("local", "health")
    process.communicate(timeout=120)
    return process.returncode == 0


@pytest.mark.slow
def test_a_killed_engine_comes_back_on_its_port_and_a_stopped_one_is_not_healthy(local):
    documented = any_port()
    local.environ["CONNECT_PORT"] = str(documented)
    with socket.create_server(("127.0.0.1", documented)):
        local.run("local", "up", "--only", "engine", "--timeout", str(READY_SECONDS))
    before = engine_of(local)
    assert before.address != f"sc://localhost:{documented}", "that port was taken"
    assert is_healthy(local)

    os.kill(pid_of(local), signal.SIGKILL)
    assert wait_until(lambda: engine_of(local).restarts == 1, 60)
    assert engine_of(local).why == "it was killed by signal 9"
    assert wait_until(lambda: engine_of(local).state == Phase.READY, READY_SECONDS)
    assert engine_of(local).address == before.address

    pid = pid_of(local)
    os.kill(pid, signal.SIGSTOP)
    try:
        stopped = time.monotonic()
        assert wait_until(lambda: not is_healthy(local), 60, pause=1.0)
        assert time.monotonic() - stopped < 30, "a lease lasts 15 s"
    finally:
        os.kill(pid, signal.SIGCONT)
