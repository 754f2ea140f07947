"""docs/07 is followed to the letter: its commands are taken from the page and run in order."""

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
    steps_up_to,
    without_commands,
)
from tests.support.services import RunningBroker

from headgate.core.kafka.topics import TopicSpec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = ROOT / "docs" / "07_filters_runbook.md"
SOURCE = "raw-event-headers"


@pytest.fixture
def newcomer(tmp_path: Path) -> Iterator[ProjectClone]:
    with clone_project(tmp_path) as found:
        yield found


def test_the_runbook_of_filters_is_right_up_to_the_deployed_filters(
    newcomer: ProjectClone, broker: RunningBroker, spark: SparkSession
) -> None:
    """Sections 1 to 4, with the API as a process and the router as a stream, but without Debezium."""
    steps = steps_up_to(read_steps(PAGE), "A second person, then deploy")
    steps = without_commands(steps, "local up", "connect deploy events")
    with open_page_walk(newcomer, broker, spark) as walk:
        broker.topics.create([TopicSpec(SOURCE, partitions=1, retention_days=1)])
        screen = walk.run(steps)
        topics = broker.topics.names()
    for dealer in ("001", "002", "003"):
        topic = f"filtered-service-events-dealer-{dealer}"
        deployed = rf"^service-by-dealer-{dealer} +deployed +1 +1 +{topic} +ana "
        assert re.search(deployed, screen, re.M)
        assert topic in topics


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_runbook_of_filters_is_right_to_its_last_line(newcomer: ProjectClone) -> None:
    screen = newcomer.run_steps(read_steps(PAGE), seconds=800)
    assert "DEALER-001" in (newcomer.root / "consumer-001.log").read_text("utf-8")
    assert "service-by-dealer-003" in screen
