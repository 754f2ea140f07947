"""The layers of the design hold, tests share helpers in one place, files stay short."""

from __future__ import annotations

import ast
import logging.config
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from importlinter.cli import lint_imports

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "headgate"
TESTS = ROOT / "tests"
# Where other Python than tests and fixtures of pytest may stand; the documents name the second.
HELPERS = (TESTS / "support", TESTS / "fixtures")
LONGEST_FILE = 500
DATASET_WORDS = re.compile(r"(?<![a-z])(taxi|trip)s?(?![a-z])", re.IGNORECASE)


def sources() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def test_each_layer_imports_only_what_stands_above_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The linter configures logging for itself, which silences every logger of the other tests.
    monkeypatch.setattr(logging.config, "dictConfig", lambda _: None)
    code = lint_imports(str(ROOT / "pyproject.toml"), no_cache=True, no_logo=True)
    assert code == 0, capsys.readouterr().out


def imported_modules(path: Path) -> Iterator[str]:
    """The dotted names that a file imports; of `from a import b` both `a` and `a.b`."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def is_test_code(module: str) -> bool:
    """Whether only pytest may import the module: it has tests or fixtures."""
    package, _, name = module.rpartition(".")
    inside = package.partition(".")[0] == "tests"
    return inside and (name.startswith("test_") or name == "conftest")


def test_no_test_module_and_no_helper_imports_another_test_module() -> None:
    found = {
        f"{path.relative_to(ROOT)}: {module}"
        for path in TESTS.rglob("*.py")
        for module in imported_modules(path)
        if is_test_code(module)
    }
    assert not found, "what two modules of tests share belongs in tests/support"


def test_helpers_of_tests_stand_in_one_folder() -> None:
    found = {
        str(path.relative_to(ROOT))
        for path in TESTS.rglob("*.py")
        if not path.name.startswith("test_") and path.name != "conftest.py"
        if path.parent not in HELPERS
    }
    assert not found, "helpers belong in tests/support"


def test_no_file_is_longer_than_a_person_reads_at_once() -> None:
    files = [*sources(), *TESTS.rglob("*.py")]
    lengths = {p: len(p.read_text("utf-8").splitlines()) for p in files}
    assert not {str(p): n for p, n in lengths.items() if n > LONGEST_FILE}


def test_the_package_knows_no_particular_dataset() -> None:
    found = {
        f"{path.relative_to(ROOT)}: {match.group()}"
        for path in sources()
        for match in DATASET_WORDS.finditer(path.read_text("utf-8"))
    }
    assert not found
