"""docs/06 is followed to the letter: its commands are taken from the page and run in order."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.support.cassandra_session import open_session
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

from headgate.local.cassandra import CassandraServer
from headgate.local.service import Running

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = ROOT / "docs" / "06_reconcile_runbook.md"
CLOUD_TABLE = "cloud_keyspace.business_table"


@pytest.fixture
def newcomer(tmp_path: Path) -> Iterator[ProjectClone]:
    with clone_project(tmp_path) as found:
        yield found


def test_the_runbook_of_reconciliation_is_right_up_to_the_first_planted_keys(
    newcomer: ProjectClone,
    broker: RunningBroker,
    spark: SparkSession,
    cassandra: Running[CassandraServer],
) -> None:
    """Sections 1 to 3, on the session's broker, Spark and Cassandra."""
    steps = without_commands(steps_up_to(read_steps(PAGE), "Plant"), "local up", "local health")
    with (
        open_page_walk(newcomer, broker, spark, **cassandra.service.endpoints()) as walk,
        open_session(cassandra.service.port) as cql,
    ):
        screen = walk.run(steps)
        topic = broker.topics.found("topic1")
        [cloud_rows] = cql.execute(f"SELECT count(*) FROM {CLOUD_TABLE}").one()
        cql.execute(f"DROP TABLE {CLOUD_TABLE}")
    assert "one contract, no faults" in screen
    assert "cassandra-source" in screen
    assert re.search(r"^22 +MISMATCH ", screen, re.M)
    assert f"seed 7: {cloud_rows} rows, {topic.span} to topic1" in screen
    assert (cloud_rows, topic.span) == (19, 28)


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
