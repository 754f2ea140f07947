"""Backfill: the fragments that make the silver rows of some dates anew."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from headgate.conditions.expr_literals import spark_identifier, spark_literal
from headgate.conditions.parser import parse_value
from headgate.conditions.spark import to_spark
from headgate.core.sql.compile_fragments import hanging, table_name, view_stem
from headgate.pipeline.compile.compile_silver import decides_date, partition_column, same_key
from headgate.pipeline.spec import Dataset

# Session variables, named in full: a column may have the same name.
COLUMNS = "backfill_columns"
BETWEEN = "BETWEEN session.backfill_from AND session.backfill_to"


def dated(dataset: Dataset) -> str:
    """Whether a bronze row belongs to the dates, with or without passing the filters."""
    day = to_spark(parse_value(dataset.partition_date_expr, dataset.bronze_types))
    return f"{day} {BETWEEN}"


def backfill(dataset: Dataset) -> str:
    views = view_stem(dataset.name)
    if decides_date(dataset):
        return _replace(dataset, f"{views}_newest")
    return f"{_not_elsewhere(dataset)}\n\n{_replace(dataset, f'{views}_unclaimed')}"


def _not_elsewhere(dataset: Dataset) -> str:
    """Rows under other dates stay untouched, so a key that stands there has no second row here."""
    table, views = table_name(dataset.silver_table), view_stem(dataset.name)
    return f"""-- A key may move to another date: one that silver holds outside of the dates is left to the merge.
-- step: view
CREATE OR REPLACE TEMPORARY VIEW {views}_unclaimed AS
SELECT fresh.*
FROM {views}_newest AS fresh
LEFT ANTI JOIN {table} AS held
  ON {hanging(same_key(dataset))}
  AND NOT coalesce(held.{partition_column(dataset)} {BETWEEN}, FALSE);"""


def _replace(dataset: Dataset, rows: str) -> str:
    # REPLACE WHERE takes no session variables, and no BY NAME.
    statement = (
        f"INSERT INTO {table_name(dataset.silver_table)}",
        f"REPLACE WHERE {partition_column(dataset)} BETWEEN :first_date AND :last_date",
    )
    text = "\n".join(spark_literal(line)[1:-1] for line in statement)
    return f"""-- These rows go in by position; the engine names the columns in the order that the table has.
-- step: columns
DECLARE OR REPLACE VARIABLE {COLUMNS} STRING DEFAULT '*';

-- step: statement
DECLARE OR REPLACE VARIABLE backfill_statement STRING;

SET VAR backfill_statement = concat('
{text}
SELECT ', session.{COLUMNS}, '
FROM {rows}
');

-- The rows of those dates go, and these come in their place.
-- step: backfill
EXECUTE IMMEDIATE backfill_statement
USING session.backfill_from AS first_date, session.backfill_to AS last_date;"""


def columns_as(view: Collection[str], table: Sequence[str]) -> str:
    """The select list that gives a view's columns in a table's order, NULL where it has none."""
    named = [spark_identifier(n) if n in view else f"NULL AS {spark_identifier(n)}" for n in table]
    # What the table lacks must fail, not vanish.
    return ", ".join([*named, *(spark_identifier(name) for name in view if name not in table)])
