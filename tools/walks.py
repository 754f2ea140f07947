"""Count how often a reader who follows a record through the code comes back to a folder: `python tools/walks.py`.

Four walks are recorded from tests on real parts: a record to its silver row, a rule to its results, a
pair to its verdict, an event to its topic. A walk is the files of `src/headgate` in the order in which
the job first calls a function of each. A return is a step into a folder (the first below
`src/headgate`) that was entered and left before.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "headgate"
OUTPUT = "HEADGATE_WALK_FILE"
START = "HEADGATE_WALK_START"


@dataclass(frozen=True)
class Walk:
    """A test that carries one record all the way, and the function with which the job begins."""

    name: str
    test: str
    start: str


TESTS = "tests/integration"
WALKS = (
    Walk(
        "a record to its silver row",
        f"{TESTS}/pipeline/test_backfill.py::test_the_certificate_holds_with_backfills_and_names_a_removed_row",
        "run_bronze",
    ),
    Walk(
        "a rule to its results",
        f"{TESTS}/quality/test_quality.py::test_what_the_job_says_is_what_an_oracle_says",
        "run_quality",
    ),
    Walk(
        "a pair to its verdict",
        f"{TESTS}/reconcile/test_reconcile.py::test_two_topics_become_verdicts_as_the_pure_function_says",
        "run_reconcile",
    ),
    Walk(
        "an event to its topic",
        f"{TESTS}/filters/test_router.py::test_the_dealers_documents_send_each_its_own_events_and_every_record_is_accounted_for",
        "run_router",
    ),
)


class FirstCalls:
    """Files of the package in the order of their first call, from the start function on, over all threads."""

    def __init__(self, start: str) -> None:
        self.files: list[str] = []
        self._start = start
        self._recording = False
        self._seen: set[CodeType] = set()
        self._lock = threading.Lock()

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event != "call" or code in self._seen:
            return
        file = code.co_filename
        if not file.startswith(str(PACKAGE)):
            return
        with self._lock:
            self._recording = self._recording or code.co_name == self._start
            if not self._recording or code.co_name == "<module>":
                return
            self._seen.add(code)
            path = Path(file).relative_to(PACKAGE).as_posix()
            if path not in self.files:
                self.files.append(path)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    """Record while the test and its fixtures run; the plugin is loaded by `record` alone."""
    calls = FirstCalls(os.environ[START])
    threading.setprofile(calls)
    sys.setprofile(calls)
    try:
        return (yield)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # pyright: ignore[reportArgumentType]
        Path(os.environ[OUTPUT]).write_text("\n".join(calls.files), encoding="utf-8")


def record(walk: Walk) -> list[str]:
    """Run the walk's test in a process of its own, with this module as a plugin."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "files"
        environment = {**os.environ, OUTPUT: str(output), START: walk.start}
        command = [sys.executable, "-m", "pytest", "-q", "-p", "tools.walks", walk.test]
        ended = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
        if ended.returncode:
            raise SystemExit(f"{walk.test} failed:\n{ended.stdout[-2000:]}")
        return output.read_text(encoding="utf-8").splitlines()


def returns(files: Sequence[str]) -> int:
    """Steps into a folder that was entered and left before."""
    count, left, here = 0, set[str](), ""
    for file in files:
        folder = file.partition("/")[0]
        if folder == here:
            continue
        count += folder in left
        left.add(here)
        here = folder
    return count


def main() -> None:
    """Print a line a walk; with `-v` the files of each."""
    for walk in WALKS:
        files = record(walk)
        folders = {file.partition("/")[0] for file in files}
        print(f"{walk.name}: {len(files)} files, {len(folders)} folders, {returns(files)} returns")
        if "-v" in sys.argv:
            print("\n".join(f"  {file}" for file in files))


if __name__ == "__main__":
    main()
