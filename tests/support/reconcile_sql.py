"""The SQL of a reconciled pair, run over messages in a Spark session."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from tests.support.reconcile_messages import (
    RECORD,
    Message,
    records_of,
)

from headgate.core.sql.script import Script
from headgate.reconcile.state import SIDES, Side

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


VIEWS: dict[Side, str] = {"onprem": "topic1_onprem_source", "cloud": "topic2_cloud_source"}
MADE = ("view",)


def run_script(
    session: SparkSession, script: Script, messages: Sequence[Message], at: datetime
) -> None:
    """Create all views of the script over these messages, with this batch time."""
    for step in script.named("clock"):
        session.sql(step)
    set_batch_time(session, at)
    for side in SIDES:
        frame = session.createDataFrame(records_of(messages, side), RECORD)
        frame.createOrReplaceTempView(VIEWS[side])
    for step in script.steps:
        if step.name in MADE:
            session.sql(step.sql)


def set_batch_time(session: SparkSession, at: datetime) -> None:
    """The time at which the verdicts of later queries are judged."""
    session.sql(f"SET VARIABLE batch_time = TIMESTAMP_LTZ '{at.isoformat()}'")
