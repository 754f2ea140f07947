"""docs/06 is followed to the letter: its commands are taken from the page and run in order."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.project_clone import ROOT, ProjectClone, clone_project, read_steps

PAGE = ROOT / "docs" / "06_reconcile_runbook.md"


@pytest.fixture
def newcomer(tmp_path: Path) -> Iterator[ProjectClone]:
    with clone_project(tmp_path) as found:
        yield found


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_runbook_of_reconciliation_is_right_to_its_last_line(newcomer: ProjectClone) -> None:
    # Four minutes of it are waiting for windows to pass.
    screen = newcomer.run_steps(read_steps(PAGE), seconds=1100)
    shown = re.search(r"```\n(DQ_STATUS +CNT\n.*?)```", PAGE.read_text("utf-8"), re.S)
    assert shown
    for line in shown.group(1).splitlines():
        assert line in screen
    assert re.search(r"^dq_missing_pk +3$", screen, re.M)
    assert re.search(r"^dq_unknown_action +3$", screen, re.M)
    assert re.search(r'^dq_keys\{.*status="MATCH".*\} ', screen, re.M)
    assert "MISSING_CLOUD" in screen
