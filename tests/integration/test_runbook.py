"""docs/05 is followed to the letter: its commands are taken from the page and run in order."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.project_clone import ROOT, ProjectClone, clone_project, read_steps

PAGE = ROOT / "docs" / "05_quality_runbook.md"


@pytest.fixture
def newcomer(tmp_path: Path) -> Iterator[ProjectClone]:
    with clone_project(tmp_path) as found:
        yield found


@pytest.mark.slow
def test_the_runbook_is_right_to_its_last_line(newcomer: ProjectClone) -> None:
    screen = newcomer.run_steps(read_steps(PAGE))
    assert re.search(r"default +dq_results_customer", screen)
    assert re.search(r"^MATCH +4560$", screen, re.M)
    assert re.search(
        r"^MISMATCH +MISSING +ERRORS +WARNINGS +INFOS\n100 +125 +265 +50 +125$", screen, re.M
    )
    assert re.search(r"^dq_error_total\{.*\} 265$", screen, re.M)
    assert "changed rule hash_mismatch" in screen
    assert re.search(r"^ERRORS +WARNINGS\n165 +150$", screen, re.M)
