"""Rows as a Spark view, and expressions evaluated on them by Spark and by the reference evaluator."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from random import Random
from typing import TYPE_CHECKING, Any

from tests.support.random_expressions import COLUMNS
from tests.support.random_rows import BATCH_TIME, Row, spark_value

from headgate.conditions.ast import Expr
from headgate.conditions.evaluator.evaluate import evaluate
from headgate.conditions.evaluator.values import Value, days_since, micros_since, time_text
from headgate.conditions.literals import spark_identifier, spark_literal
from headgate.conditions.spark_sql import to_spark
from headgate.declarations.types import SqlType

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VIEW = "hostile_rows"
ANSI = "spark.sql.ansi.enabled"
# Dates and times that Python does not hold come back as whole numbers or text.
_SHOWN = {
    "DATE": "unix_date({})",
    "TIMESTAMP": "CAST({} AS STRING)",
    "TIMESTAMP_LTZ": "unix_micros({})",
}


def seeded_random(quick: int | None = None) -> Random:
    """A generator seeded by EXPR_SEED, else by `quick`, else at random; the seed is printed."""
    seed = int(os.environ.get("EXPR_SEED") or quick or Random().randrange(1 << 32))
    print(f"repeat with EXPR_SEED={seed}")
    return Random(seed)


@contextmanager
def create_rows_view(spark: SparkSession, rows: Sequence[Row]) -> Iterator[SparkSession]:
    """Create the view VIEW over these rows and the variable batch_time; drop both at the end."""
    lines = [
        ", ".join([str(at), *(spark_value(row[name], kind) for name, kind in COLUMNS.items())])
        for at, row in enumerate(rows)
    ]
    names = ", ".join(["row_number", *(spark_identifier(name) for name in COLUMNS)])
    text = ",\n".join(f"({line})" for line in lines)
    spark.sql("DECLARE OR REPLACE VARIABLE batch_time TIMESTAMP")
    spark.sql(f"SET VARIABLE batch_time = {spark_literal(BATCH_TIME)}")
    # Kept in memory, or Spark would compute the columns while it plans, without compiling them.
    frame = spark.sql(f"SELECT * FROM VALUES {text} AS rows({names})").cache()
    frame.createOrReplaceTempView(VIEW)
    try:
        yield spark
    finally:
        spark.catalog.dropTempView(VIEW)
        frame.unpersist()
        spark.conf.unset(ANSI)
        spark.sql("DROP TEMPORARY VARIABLE batch_time")


def evaluate_on_spark(spark: SparkSession, expressions: Sequence[Expr]) -> list[tuple[Any, ...]]:
    """One tuple per row with one value per expression, from a single query."""
    columns = ",\n".join(
        _SHOWN.get(item.type.name, "{}").format(to_spark(item)) + f" AS c{at}"
        for at, item in enumerate(expressions)
    )
    found = spark.sql(f"SELECT row_number, {columns} FROM {VIEW}").collect()
    return [tuple(row)[1:] for row in sorted(found, key=lambda row: row[0])]


def evaluate_by_reference(expression: Expr, row: Row) -> Value:
    """The value by the reference evaluator, in the form that `evaluate_on_spark` returns."""
    return _shown(evaluate(expression, row, BATCH_TIME), expression.type)


def comparison_key(value: Any) -> object:
    """A key that is equal for identical values only: 1 is not TRUE, and zero has a sign."""
    return type(value), repr(value) if isinstance(value, float) else value


def _shown(value: Value, kind: SqlType) -> Value:
    if value is None or not (kind.is_time or kind.name == "DATE"):
        return value
    if kind.name == "DATE":
        return value if isinstance(value, int) else days_since(value)  # pyright: ignore
    micros = micros_since(value) if isinstance(value, datetime) else value
    return time_text(micros) if kind.name == "TIMESTAMP" else micros  # pyright: ignore
