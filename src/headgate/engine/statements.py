"""Running SQL text: PySpark's own signature loses its types, so there is one door."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession


def sql(session: SparkSession, statement: str) -> DataFrame:
    """Run one statement; a query is not carried out before its rows are asked for."""
    return session.sql(statement)  # pyright: ignore[reportUnknownMemberType]  # see above
