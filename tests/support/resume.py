"""`pytest -p tests.support.resume`: continue a run that was interrupted or failed with the tests that have not passed yet.

The ids of passed tests stand in .headgate/tests-passed.txt, for one state of the work tree: after any
change, and after a run in which nothing failed, all tests run again.
"""

from __future__ import annotations

import hashlib
import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
FILE = Path(".headgate") / "tests-passed.txt"


def state_of(root: Path) -> str:
    """A digest of the commit and of the changes since."""
    asked = (["git", "rev-parse", "HEAD"], ["git", "diff", "HEAD"])
    said = [subprocess.run(words, cwd=root, capture_output=True, check=True) for words in asked]
    return hashlib.sha256(b"".join(one.stdout for one in said)).hexdigest()


class Resume:
    """Deselects what passed before; the controller process alone records what passes now."""

    def __init__(self, passed: frozenset[str], file: Path | None) -> None:
        self.passed = passed
        self._file = file
        self._remaining: set[str] = set()
        self._spoilt: set[str] = set()

    def pytest_report_header(self) -> str:
        return f"resume: {len(self.passed)} tests have passed before and are left out"

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput["passed"] = sorted(self.passed)

    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        config.hook.pytest_deselected(items=[i for i in items if i.nodeid in self.passed])
        items[:] = [item for item in items if item.nodeid not in self.passed]

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._remaining.update(item.nodeid for item in session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: Sequence[str]) -> None:
        self._remaining.update(ids)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not report.passed:
            self._spoilt.add(report.nodeid)
        if self._file and report.when == "teardown" and report.nodeid not in self._spoilt:
            self._remaining.discard(report.nodeid)
            with self._file.open("a") as file:
                file.write(f"{report.nodeid}\n")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """List the files with tests that have not passed, whatever ended the run."""
        files = Counter(id.partition("::")[0] for id in self._remaining)
        if files:
            terminalreporter.section(f"{files.total()} tests are left for the next run")
        for file, count in sorted(files.items()):
            terminalreporter.line(f"{count:5} {file}")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        nothing_left = exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and self.passed
        if nothing_left:
            session.exitstatus = pytest.ExitCode.OK
        if self._file and (nothing_left or exitstatus == pytest.ExitCode.OK):
            self._file.unlink()


def pytest_configure(config: pytest.Config) -> None:
    given = getattr(config, "workerinput", None)
    if given is not None:
        config.pluginmanager.register(Resume(frozenset(given["passed"]), None))
        return
    file, state = config.rootpath / FILE, state_of(ROOT)
    kept = file.read_text().splitlines() if file.exists() else []
    if kept[:1] != [state]:
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"{state}\n")
    passed = frozenset(kept[1:] if kept[:1] == [state] else [])
    config.pluginmanager.register(Resume(passed, file))
