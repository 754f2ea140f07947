"""A compiled file made ready for a batch: its views over these records, its clock at the batch's time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from headgate.conditions.expr_literals import spark_literal
from headgate.core.lake.jvm import session_id
from headgate.core.lake.statements import sql
from headgate.core.ledger.store_model import Intent
from headgate.core.sql.compile_script import Script

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STEPS = ("clock", "revision", "view")
# What the views of a session were last made for: they read others by name, so that most stay as
# they are when the records change.
BOUND = "headgate.bound."


def bind(
    session: SparkSession, script: Script, views: Mapping[str, DataFrame], intent: Intent
) -> None:
    """The records under the names that the file reads, then everything up to its statements."""
    put(views)
    for step in STEPS:
        for statement in script.named(step):
            sql(session, statement)
    set_clock(session, intent)


def bind_once(
    session: SparkSession, script: Script, views: Mapping[str, DataFrame], intent: Intent
) -> None:
    """The same for a file whose views the session may have from the batch before."""
    bound, made_for = f"{BOUND}{intent.job}", f"{intent.revisions[0]} {session_id(session)}"
    if session.conf.get(bound, "") == made_for:
        put(views)
        set_clock(session, intent)
    else:
        bind(session, script, views, intent)
        session.conf.set(bound, made_for)


def put(views: Mapping[str, DataFrame]) -> None:
    for name, records in views.items():
        records.createOrReplaceTempView(name)


def set_clock(session: SparkSession, intent: Intent) -> None:
    """Every "now" of the file, and the revision that its rows name."""
    now = intent.batch_time.isoformat()
    sql(session, f"SET VARIABLE batch_time = TIMESTAMP '{now}'")
    sql(session, f"SET VARIABLE batch_revision = {spark_literal(intent.revisions[0])}")
