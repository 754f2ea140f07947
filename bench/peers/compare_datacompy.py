"""datacompy: the Spark compare, its statistics of columns, and rows that differ."""

from __future__ import annotations

from datacompy.spark import SparkSQLCompare
from pyspark.sql import DataFrame, SparkSession
from table_task import KEY, Difference, measure_peer


def compare(session: SparkSession, left: DataFrame, right: DataFrame) -> Difference:
    found = SparkSQLCompare(session, left, right, join_columns=[KEY])
    columns = {stat["column"]: int(stat["unequal_cnt"]) for stat in found.column_stats}
    alone = found.df1_unq_rows.count() + found.df2_unq_rows.count()
    differing = found.intersect_rows.count() - found.count_matching_rows() + alone
    return Difference(differing, {name: n for name, n in columns.items() if name != KEY})


measure_peer("datacompy", compare)
