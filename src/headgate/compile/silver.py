"""Silver: the fragments that filter, cast, rename and deduplicate bronze rows."""

from __future__ import annotations

from headgate.compile.fragments import lines
from headgate.expr.literals import spark_identifier, spark_literal
from headgate.expr.parse import parse_condition, parse_value
from headgate.expr.spark import to_spark
from headgate.expr.tree import columns_of
from headgate.spec.dataset import Column, Dataset

# Origin columns by which the newest row of a key is known.
ORIGIN = {
    "ingestion_ts": "TIMESTAMP",
    "kafka_timestamp": "TIMESTAMP",
    "kafka_partition": "INT",
    "kafka_offset": "BIGINT",
}
_ORDER = "struct({0}.kafka_timestamp, {0}.kafka_partition, {0}.kafka_offset)"


def silver_value(column: Column) -> str:
    name = spark_identifier(column.name)
    if column.bronze_type == column.silver_type:
        return name
    return f"try_cast({name} AS {column.silver_type.spark})"


def silver_names(dataset: Dataset) -> tuple[str, ...]:
    return (
        dataset.surrogate_key_name,
        *(column.silver_name for column in dataset.columns),
        dataset.partition_date_col,
        *ORIGIN,
    )


def silver_columns(dataset: Dataset) -> str:
    """The columns of the CREATE TABLE."""
    return lines(
        [
            f"{spark_identifier(dataset.surrogate_key_name)} STRING"
            f" COMMENT {spark_literal('MD5 of the surrogate key fields')}",
            *(_column(column) for column in dataset.columns),
            f"{spark_identifier(dataset.partition_date_col)} DATE",
            *(f"{name} {kind}" for name, kind in ORIGIN.items()),
        ]
    )


def _column(column: Column) -> str:
    comment = f" COMMENT {spark_literal(column.comment)}" if column.comment else ""
    return f"{spark_identifier(column.silver_name)} {column.silver_type.spark}{comment}"


def silver_values(dataset: Dataset) -> str:
    """The select list from bronze columns to silver columns."""
    day = to_spark(parse_value(dataset.partition_date_expr, dataset.bronze_types))
    return lines(
        [
            f"{surrogate_key(dataset)} AS {spark_identifier(dataset.surrogate_key_name)}",
            *(_named(column) for column in dataset.columns),
            f"{day} AS {spark_identifier(dataset.partition_date_col)}",
            *ORIGIN,
        ]
    )


def _named(column: Column) -> str:
    value, name = silver_value(column), spark_identifier(column.silver_name)
    return value if value == name else f"{value} AS {name}"


def surrogate_key(dataset: Dataset) -> str:
    """MD5 over the silver values as text, NULL as empty, joined by a vertical bar."""
    parts = (
        f"coalesce(CAST({silver_value(dataset.column(name))} AS STRING), '')"
        for name in dataset.surrogate_key_fields
    )
    inner = ",\n".join(f"    {part}" for part in parts)
    return f"md5(concat_ws('|',\n{inner}\n  ))"


def keep(dataset: Dataset) -> str:
    """What a row must fulfil: the quality filters, and values that fit their silver types."""
    filters = [
        to_spark(parse_condition(text, dataset.bronze_types)) for text in dataset.quality_filters
    ]
    fits = [
        f"{spark_identifier(c.name)} IS NULL OR {silver_value(c)} IS NOT NULL"
        for c in dataset.columns
        if c.bronze_type != c.silver_type
    ]
    return "  " + "\n  AND ".join(f"({condition})" for condition in (*filters, *fits))


def key_names(dataset: Dataset) -> tuple[str, ...]:
    return tuple(spark_identifier(dataset.column(name).silver_name) for name in dataset.dedup_key)


def rebuild(dataset: Dataset, table: str) -> str:
    return f"""-- The whole table anew.
-- step: rebuild
INSERT OVERWRITE {table}
SELECT
{lines(map(spark_identifier, silver_names(dataset)))}
FROM {dataset.name}_newest;"""


def merge(dataset: Dataset, table: str) -> str:
    """Only the new rows of bronze: first what each is, then the merge of those that count."""
    keys = key_names(dataset)
    same = "\n  AND ".join(f"held.{key} <=> fresh.{key}" for key in keys)
    near = _same_partition(dataset)
    return f"""-- What each new row is beside the row that silver holds under its key.
-- step: classify
CREATE OR REPLACE TEMPORARY VIEW {dataset.name}_classified AS
SELECT
  fresh.*,
  CASE
    WHEN held.kafka_offset IS NULL THEN 'kept'
    WHEN {_ORDER.format("fresh")}
      > {_ORDER.format("held")} THEN 'replaced'
    ELSE 'duplicate'
  END AS outcome
FROM {dataset.name}_newest AS fresh
LEFT JOIN {table} AS held
  ON {same}{near};

-- step: merge
MERGE INTO {table} AS held
USING (
  SELECT * FROM {dataset.name}_classified WHERE outcome IN ('kept', 'replaced')
) AS fresh
ON {same}{near}
WHEN MATCHED THEN UPDATE SET
{lines((f"held.{n} = fresh.{n}" for n in map(spark_identifier, silver_names(dataset))))}
WHEN NOT MATCHED THEN INSERT (
{lines(map(spark_identifier, silver_names(dataset)))}
) VALUES (
{lines(f"fresh.{n}" for n in map(spark_identifier, silver_names(dataset)))}
);"""


def _same_partition(dataset: Dataset) -> str:
    """Where the key decides the date, only that date's files need to be looked at."""
    day = parse_value(dataset.partition_date_expr, dataset.bronze_types)
    if not set(columns_of(day)) <= set(dataset.dedup_key):
        return ""
    name = spark_identifier(dataset.partition_date_col)
    return f"\n  AND held.{name} <=> fresh.{name}"
