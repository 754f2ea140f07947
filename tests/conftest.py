"""What holds for every test: no settings leak in from the shell, and units stay on their own."""

from __future__ import annotations

import builtins
import gc
import os
import socket
import subprocess
from collections.abc import Generator, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import pytest
from hypothesis import HealthCheck, settings

from headgate.config.schema import NAMES
from headgate.terminal.console import console

TESTS = Path(__file__).parent
ROOT = TESTS.parent
# An example that a busy machine takes long over is no fault; all else stays as the profile has it.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")


# Servers that are dear to start, and the files that use any of them: one worker runs all of these.
SERVERS = frozenset({"cassandra", "connect", "postgres", "private_broker", "registry"})
FILES_WITH_SERVERS = frozenset(
    "tests/integration/{}/test_{}.py".format(*name.rsplit("/", 1))
    for name in """
    api/api_contract core/engine/stream_faults core/groups core/schema_registry filters/consumer
    filters/control_at_once filters/debezium filters/events_api filters/events_written local/broker
    local/cassandra_service local/postgres_service pipeline/generator reconcile/connect/connect_cli
    reconcile/connect/smt_connect reconcile/connect/smt_image reconcile/connect/smt_outages
    reconcile/connect/smt_secrets reconcile/audit_cassandra reconcile/hasher reconcile/hasher_cdc
    reconcile/hasher_faults reconcile/hasher_looks reconcile/reconcile_runbook reconcile/repair
    """.split()
)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    # The smoke tests run without xdist.
    from tests.support.scheduling import FileScheduling

    return FileScheduling(FILES_WITH_SERVERS, config, log)


def folder_of(item: pytest.Item | pytest.Module) -> str:
    return item.path.relative_to(TESTS).parts[0] if item.path.is_relative_to(TESTS) else ""


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Modules and tests stay to the end, so the garbage collector need not search them again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    unlisted: set[str] = set()
    for item in items:
        if folder_of(item) == "integration":
            item.add_marker(pytest.mark.integration)
        if isinstance(item, pytest.Function) and SERVERS.intersection(item.fixturenames):
            unlisted.add(item.nodeid.partition("::")[0])
    if unlisted := unlisted - FILES_WITH_SERVERS:
        raise pytest.UsageError(f"list in FILES_WITH_SERVERS: {', '.join(sorted(unlisted))}")
    # The largest lot first, so that it does not come last and leave the other worker idle.
    items.sort(key=lambda item: item.nodeid.partition("::")[0] not in FILES_WITH_SERVERS)


@pytest.fixture(scope="session", autouse=True)
def no_settings_from_the_shell() -> Iterator[None]:
    """A BROKER or TOPIC exported by the developer must not change what a test proves."""
    with pytest.MonkeyPatch.context() as patch:
        for name in NAMES.values():
            patch.delenv(name, raising=False)
        yield


def refuse_outside(*_: object, **__: object) -> NoReturn:
    raise AssertionError("a unit test may not start a process or open a connection")


@pytest.fixture(scope="module", autouse=True)
def units_touch_nothing_outside(request: pytest.FixtureRequest) -> Iterator[None]:
    """Unit tests start no process, open no connection and load no PySpark: integration does.

    Where integration tests have loaded PySpark before in this process, an import statement would
    find it there; so the statement itself is refused. Of imports at the head of a module, which
    have run by now, `integration/test_unit_imports.py` takes care.
    """
    if folder_of(request.node) != "unit":
        yield
        return
    load_module = builtins.__import__

    def refuse_pyspark(name: str, *args: Any, **options: Any) -> ModuleType:
        if name.partition(".")[0] == "pyspark":
            raise AssertionError("a unit test may not import pyspark, nor call what imports it")
        return load_module(name, *args, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(builtins, "__import__", refuse_pyspark)
        patch.setattr(subprocess.Popen, "__init__", refuse_outside)
        patch.setattr(socket.socket, "connect", refuse_outside)
        patch.setattr(os, "fork", refuse_outside, raising=False)
        yield


@pytest.fixture(autouse=True)
def output_as_text() -> None:
    """`-o json` of one test must not reach the next: the console is one for the process."""
    console.format, console.debug = "text", False


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """An empty project folder with the shipped profiles."""
    (tmp_path / "env").mkdir()
    for profile in (ROOT / "env").glob("*.env"):
        (tmp_path / "env" / profile.name).write_bytes(profile.read_bytes())
    return tmp_path
