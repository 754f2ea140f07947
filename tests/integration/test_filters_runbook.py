"""docs/07 is followed to the letter: its commands are taken from the page and run in order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.project_clone import ROOT, ProjectClone, clone_project, read_steps

PAGE = ROOT / "docs" / "07_filters_runbook.md"


@pytest.fixture
def newcomer(tmp_path: Path) -> Iterator[ProjectClone]:
    with clone_project(tmp_path) as found:
        yield found


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_runbook_of_filters_is_right_to_its_last_line(newcomer: ProjectClone) -> None:
    screen = newcomer.run_steps(read_steps(PAGE), seconds=800)
    assert "DEALER-001" in (newcomer.root / "consumer-001.log").read_text("utf-8")
    assert "service-by-dealer-003" in screen
