"""The independent re-check of a certificate, run in this process."""

from __future__ import annotations

import io
import runpy
import subprocess
from contextlib import redirect_stdout
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "recheck_certificate.py"


def recheck_certificate(certificate: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the script as `python SCRIPT` would; an interpreter of its own takes a second longer."""
    command = [str(SCRIPT), str(certificate), *options]
    output, code = io.StringIO(), 0
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(output):
        patch.setattr("sys.argv", command)
        try:
            runpy.run_path(str(SCRIPT), run_name="__main__")
        except SystemExit as end:
            code = int(end.code or 0)
    return subprocess.CompletedProcess(command, code, output.getvalue(), "")
