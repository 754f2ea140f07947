"""The layers of the design hold, files stay short, and no dataset's words stand in the package."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from importlinter.cli import lint_imports

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "headgate"
LONGEST_FILE = 500
DATASET_WORDS = re.compile(r"(?<![a-z])(taxi|trip)s?(?![a-z])", re.IGNORECASE)


def sources() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def test_each_layer_imports_only_what_stands_above_it(capsys: pytest.CaptureFixture[str]) -> None:
    code = lint_imports(str(ROOT / "pyproject.toml"), no_cache=True, no_logo=True)
    assert code == 0, capsys.readouterr().out


def test_no_file_is_longer_than_a_person_reads_at_once() -> None:
    lengths = {p: len(p.read_text("utf-8").splitlines()) for p in sources()}
    assert not {str(p): n for p, n in lengths.items() if n > LONGEST_FILE}


def test_the_package_knows_no_particular_dataset() -> None:
    found = {
        f"{path.relative_to(ROOT)}: {match.group()}"
        for path in sources()
        for match in DATASET_WORDS.finditer(path.read_text("utf-8"))
    }
    assert not found
