"""A compiled file made ready for a batch: its views over these records, its clock at the batch's time."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from headgate.compile.script import Script
from headgate.engine.statements import sql
from headgate.expr.literals import spark_literal
from headgate.store.model import Intent

STEPS = ("clock", "revision", "view")


def bind(
    session: SparkSession, script: Script, views: Mapping[str, DataFrame], intent: Intent
) -> None:
    """The records under the names that the file reads, then everything up to its statements."""
    for name, records in views.items():
        records.createOrReplaceTempView(name)
    for step in STEPS:
        for statement in script.named(step):
            sql(session, statement)
    now = intent.batch_time.isoformat()
    sql(session, f"SET VARIABLE batch_time = TIMESTAMP '{now}'")
    sql(session, f"SET VARIABLE batch_revision = {spark_literal(intent.revisions[0])}")
