"""A broken-off run of all tests goes on with those that have not passed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.resume import FILE, ROOT

TESTS = """
from pathlib import Path

def test_sound():
    with Path("ran.txt").open("a") as file:
        file.write("sound ")

def test_mended():
    assert Path("mended").exists()
"""


def run(folder: Path, *given: str) -> int:
    words = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "tests.support.resume",
        "--rootdir",
        str(folder),
    ]
    return subprocess.run(
        [*words, *given, str(folder / "test_some.py")],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        check=False,
    ).returncode


def test_a_run_goes_on_with_what_has_not_passed_and_then_begins_anew(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(TESTS)
    assert run(tmp_path, "-n", "2") == 1
    (tmp_path / "mended").touch()
    assert run(tmp_path) == 0
    assert (tmp_path / "ran.txt").read_text() == "sound "
    assert not (tmp_path / FILE).exists()
    assert run(tmp_path) == 0
    assert (tmp_path / "ran.txt").read_text() == "sound sound "
