"""Set-up: one line a stage, the details in a log, and the end of it where a stage fails."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Stands for Python: makes an environment that holds itself, and notes what else it is asked for.
PYTHON = """#!/bin/sh
echo "$@" >> "$CALLS"
case "$*" in
  *"-m venv"*) mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
  *"$FAILS"*) echo "no space left on device"; exit 1 ;;
esac
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "a clone"
    for name in ("scripts", "requirements"):
        shutil.copytree(ROOT / name, folder / name)
    python = folder / "python"
    python.write_text(PYTHON)
    python.chmod(0o755)
    return folder


def set_up(project: Path, kind: str, fails: str = "nothing") -> tuple[int, list[str], list[str]]:
    """The exit code, the lines that a person sees, and what Python was asked for."""
    calls = project / "calls"
    environ = {**os.environ, "PYTHON": str(project / "python"), "UV": "", "CALLS": str(calls)}
    done = subprocess.run(
        [project / "scripts" / "setup.sh", kind],
        env={**environ, "FAILS": fails},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == ""
    return done.returncode, done.stderr.splitlines(), calls.read_text().splitlines()


def test_each_stage_is_one_line_and_every_package_has_a_hash(project: Path) -> None:
    code, lines, calls = set_up(project, "run")
    assert code == 0
    stages = {re.sub(r" +\d+ s$", "", line).strip() for line in lines[1:]}
    assert stages == {
        *("✓ virtual environment", "✓ Java", "✓ Spark", "✓ other packages", "✓ headgate"),
    }
    installed = [call for call in calls if "-m pip install" in call]
    assert all("--require-hashes" in call or call.endswith("-e .") for call in installed)
    assert not any("dev.txt" in call for call in calls)
    split = [(project / ".venv" / f"{part}.txt").read_text() for part in ("spark", "others")]
    assert sorted("".join(split).splitlines()) == sorted(
        (ROOT / "requirements" / "run.txt").read_text().splitlines()
    )
    assert re.findall(r"^\w+==", split[0], re.M) == ["py4j==", "pyspark=="]


def test_developers_tools_are_a_stage_of_their_own(project: Path) -> None:
    set_up(project, "run")
    code, lines, calls = set_up(project, "dev")
    assert (code, len(lines)) == (0, 1)
    assert calls[-1].endswith("--require-hashes -r requirements/dev.txt")


@pytest.mark.parametrize("fails", ["spark.txt", "others.txt", "-e ."])
def test_the_end_of_the_log_is_shown_where_a_stage_fails(project: Path, fails: str) -> None:
    code, lines, _ = set_up(project, "run", fails)
    assert code != 0
    assert any(re.match(r"  ✗ .*: the end of \.venv/setup\.log", line) for line in lines)
    assert "      no space left on device" in lines
    assert "no space left on device" in (project / ".venv" / "setup.log").read_text()
