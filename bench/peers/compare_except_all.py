"""Spark's own exceptAll, both ways: how many rows the other side lacks, and no more."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from table_task import Difference, measure_peer


def compare(session: SparkSession, left: DataFrame, right: DataFrame) -> Difference:
    # As ours has it: with Spark's default so many columns make a method that the JIT leaves alone.
    session.conf.set("spark.sql.codegen.hugeMethodLimit", "8000")
    gone, came = left.exceptAll(right).count(), right.exceptAll(left).count()
    return Difference(max(gone, came))


measure_peer("pyspark", compare)
