"""docs/05 is followed to the letter: its commands are taken from the page and run in order."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.support.page_walk import open_page_walk
from tests.support.project_clone import (
    ROOT,
    ProjectClone,
    clone_project,
    read_steps,
    steps_from,
    steps_up_to,
)
from tests.support.services import RunningBroker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = ROOT / "docs" / "05_quality_runbook.md"


@pytest.fixture
def newcomer(tmp_path: Path) -> Iterator[ProjectClone]:
    with clone_project(tmp_path) as found:
        yield found


def test_the_runbook_is_right_from_its_topics_to_its_results(
    newcomer: ProjectClone, broker: RunningBroker, spark: SparkSession
) -> None:
    """The first half without section 1, which starts a stack."""
    steps = steps_from(steps_up_to(read_steps(PAGE), "Results"), "Topics")
    with open_page_walk(newcomer, broker, spark) as walk:
        screen = walk.run(steps)
    results = re.search(r"```\n(DQ_STATUS +RECORDS\n.*?)```", PAGE.read_text("utf-8"), re.S)
    assert results
    for line in results.group(1).splitlines():
        assert line in screen
    assert "run 1 FINISHED" in screen
    assert ": nothing new" in screen
    assert re.search(r"default +dq_results_customer", screen)
    assert "9,875 accepted, 40 refused, 10 tombstone" in screen
    assert re.search(r"^dq_missing_pk +25$", screen, re.M)
    assert "CREATE" in (newcomer.root / "dq_generated.sql").read_text("utf-8")


@pytest.mark.slow
def test_the_runbook_is_right_to_its_last_line(newcomer: ProjectClone) -> None:
    screen = newcomer.run_steps(read_steps(PAGE))
    assert re.search(r"default +dq_results_customer", screen)
    assert re.search(r"^MATCH +4560$", screen, re.M)
    assert re.search(
        r"^MISMATCH +MISSING +ERRORS +WARNINGS +INFOS\n100 +125 +265 +50 +4685$", screen, re.M
    )
    assert re.search(r"^dq_error_total\{.*\} 265$", screen, re.M)
    assert "changed rule hash_mismatch" in screen
    assert re.search(r"^DQ_SEVERITY +MISMATCHES\nWARN +100$", screen, re.M)
