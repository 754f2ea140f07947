"""What holds for every test: no settings leak in from the shell, and units stay on their own."""

from __future__ import annotations

import builtins
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import pytest
from hypothesis import HealthCheck, settings
from tests.support.resume import strip_group

from headgate.axes import NAMES
from headgate.cli.console import console

TESTS = Path(__file__).parent
ROOT = TESTS.parent
# An example that a busy machine takes long over is no fault; all else stays as the profile has it.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")


# Fixtures of servers that are dear to start: one worker runs all files that use any of them.
SERVICES = frozenset({"cassandra", "connect", "postgres", "private_broker", "registry"})


def folder_of(item: pytest.Item) -> str:
    return item.path.relative_to(TESTS).parts[0] if item.path.is_relative_to(TESTS) else ""


# Before xdist's own hook, which adds the group to the test's id.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Group the tests for `--dist loadgroup`: files that use services together, each other file alone."""
    using_services = {
        item.path
        for item in items
        if isinstance(item, pytest.Function) and SERVICES.intersection(item.fixturenames)
    }
    for item in items:
        if folder_of(item) == "integration":
            item.add_marker(pytest.mark.integration)
        group = "services" if item.path in using_services else item.nodeid.partition("::")[0]
        item.add_marker(pytest.mark.xdist_group(group))
    # The largest group first, so that it does not come last and leave the other worker idle.
    items.sort(key=lambda item: item.path not in using_services)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Report a test by its own id, without the group that xdist's workers have added to it."""
    # A worker compares the id with its own.
    if "PYTEST_XDIST_WORKER" not in os.environ:
        report.nodeid = strip_group(report.nodeid)


@pytest.fixture(scope="session", autouse=True)
def no_settings_from_the_shell() -> Iterator[None]:
    """A BROKER or TOPIC exported by the developer must not change what a test proves."""
    with pytest.MonkeyPatch.context() as patch:
        for name in NAMES.values():
            patch.delenv(name, raising=False)
        yield


@pytest.fixture(autouse=True)
def units_touch_nothing_outside(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unit tests start no process, open no connection and load no PySpark: integration does.

    Where integration tests have loaded PySpark before in this process, an import statement would
    find it there; so the statement itself is refused. Of imports at the head of a module, which
    have run by now, `integration/test_unit_imports.py` takes care.
    """
    if folder_of(request.node) != "unit":
        return
    load_module = builtins.__import__

    def refuse(*_: object, **__: object) -> NoReturn:
        raise AssertionError("a unit test may not start a process or open a connection")

    def refuse_pyspark(name: str, *args: Any, **options: Any) -> ModuleType:
        if name.partition(".")[0] == "pyspark":
            raise AssertionError("a unit test may not import pyspark, nor call what imports it")
        return load_module(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", refuse_pyspark)
    monkeypatch.setattr(subprocess.Popen, "__init__", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(os, "fork", refuse, raising=False)


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
