"""No unit test loads PySpark, nor does any module that one of them imports."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
# In a process of its own: in this one PySpark is loaded. With None in its place every import fails,
# and collecting the tests ends with the chain of imports that leads there.
COLLECT = """
import sys
import pytest

sys.modules["pyspark"] = None
options = ["--collect-only", "-qq", "--assert=plain", "-p", "no:cacheprovider"]
sys.exit(pytest.main([*options, "tests/unit"]))
"""


def test_unit_tests_are_collected_without_pyspark() -> None:
    command = [sys.executable, "-c", COLLECT]
    collected = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert collected.returncode == 0, collected.stdout[-4000:]
