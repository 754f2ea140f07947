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


def run(folder: Path, *given: str) -> subprocess.CompletedProcess[str]:
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
        capture_output=True,
        text=True,
    )


def test_a_run_goes_on_with_what_has_not_passed_and_then_begins_anew(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(TESTS)
    first = run(tmp_path, "-n", "2")
    assert first.returncode == 1
    assert "1 tests are left for the next run" in first.stdout
    assert "    1 test_some.py" in first.stdout
    (tmp_path / "mended").touch()
    second = run(tmp_path)
    assert second.returncode == 0
    assert "left for the next run" not in second.stdout
    assert (tmp_path / "ran.txt").read_text() == "sound "
    assert not (tmp_path / FILE).exists()
    assert run(tmp_path).returncode == 0
    assert (tmp_path / "ran.txt").read_text() == "sound sound "
