"""Ours: what `headgate reconcile tables` does, samples among it."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from table_task import KEY, Difference, measure_peer

from headgate.reconcile.table_compare.plan import Asked, Column, Table, plan
from headgate.reconcile.table_compare.run import Comparison


def table(name: str, frame: DataFrame) -> Table:
    frame.createOrReplaceTempView(name)
    return Table(name, name, tuple(Column(*each) for each in frame.dtypes))


def compare(session: SparkSession, left: DataFrame, right: DataFrame) -> Difference:
    session.conf.set("spark.sql.caseSensitive", "true")
    session.conf.set("spark.sql.codegen.hugeMethodLimit", "8000")
    planned = plan(table("peer_left", left), table("peer_right", right), Asked(key=(KEY,)))
    found = Comparison(session, planned).run()
    return Difference(
        sum(n for status, n in found.counts.items() if status != "MATCH"), found.columns
    )


measure_peer("headgate", compare)
