"""SQL fragments of silver: filter, cast, rename, deduplicate; as rebuild, merge, or backfill of dates."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Sequence

from headgate.conditions.ast import columns_of
from headgate.conditions.literals import spark_identifier, spark_literal
from headgate.conditions.parser import parse_condition, parse_value
from headgate.conditions.spark_sql import to_spark
from headgate.core.sql.fragments import (
    TABLE_PROPERTIES,
    WIDTH,
    call,
    filled,
    fits,
    hanging,
    lines,
    properties,
    table_name,
    tried,
    view_stem,
)
from headgate.declarations.columns import Column
from headgate.declarations.types import STRING
from headgate.pipeline.spec import Dataset

# Origin columns by which the newest row of a key is known.
ORIGIN = {
    "ingestion_ts": "TIMESTAMP",
    "kafka_timestamp": "TIMESTAMP",
    "kafka_partition": "INT",
    "kafka_offset": "BIGINT",
}
# Iceberg keeps one open Parquet writer for each partition of a task unless fanout is off: 1,461 dates
# in one task filled a heap of 2 GB. Without it the rows of a task are sorted by partition (the sort
# spills to disk), and one writer is open at a time. Rows are shuffled by partition before that, so
# that a commit writes one file for each date.
CLUSTERED_WRITES = {
    "write.distribution-mode": "hash",
    "write.merge.distribution-mode": "hash",
    "write.spark.fanout.enabled": "false",
}
_ORDER = "struct({0}.kafka_timestamp, {0}.kafka_partition, {0}.kafka_offset)"


def silver_value(column: Column) -> str:
    name = spark_identifier(column.name)
    if column.bronze_type == column.silver_type:
        return name
    return tried(column.name, column.bronze_type, column.silver_type)


def silver_names(dataset: Dataset) -> tuple[str, ...]:
    names = (
        dataset.surrogate_key_name,
        *(column.silver_name for column in dataset.columns),
        dataset.partition_date_col,
        *ORIGIN,
    )
    return tuple(spark_identifier(name) for name in names)


def silver_properties() -> str:
    """The properties of the CREATE TABLE."""
    return properties({**TABLE_PROPERTIES, **CLUSTERED_WRITES})


def silver_columns(dataset: Dataset) -> str:
    """The columns of the CREATE TABLE."""
    key_words = spark_literal("MD5 of the surrogate key fields")
    return lines(
        [
            f"{spark_identifier(dataset.surrogate_key_name)} STRING COMMENT {key_words}",
            *(_column(column) for column in dataset.columns),
            f"{partition_column(dataset)} DATE",
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
            f"{day} AS {partition_column(dataset)}",
            *ORIGIN,
        ]
    )


def _named(column: Column) -> str:
    value, name = silver_value(column), spark_identifier(column.silver_name)
    return value if value == name else f"{value} AS {name}"


def surrogate_key(dataset: Dataset) -> str:
    """MD5 over the lengths of the silver values in characters, -1 for NULL, then the values as text.

    The lengths keep ('a|b', 'c') apart from ('a', 'b|c'), and NULL from the empty text.
    """
    texts = [_key_text(dataset.column(name)) for name in dataset.surrogate_key_fields]
    lengths = [f"coalesce(char_length({text}), -1)" for text in texts]
    # concat_ws leaves NULL out: its length says that nothing stands for it.
    return call("md5", [call("concat_ws", ["'|'", *lengths, *texts])])


def _key_text(column: Column) -> str:
    value = silver_value(column)
    return value if column.silver_type == STRING else f"CAST({value} AS STRING)"


def keep(dataset: Dataset) -> str:
    """What a row must fulfil: the quality filters, and values that fit their silver types."""
    filters = [
        to_spark(parse_condition(text, dataset.bronze_types)) for text in dataset.quality_filters
    ]
    fitting = [
        f"{spark_identifier(c.name)} IS NULL OR {silver_value(c)} IS NOT NULL"
        for c in dataset.columns
        if c.bronze_type != c.silver_type
    ]
    wanted = [f"-- the quality filters\n({filters[0]})", *(f"AND ({f})" for f in filters[1:])]
    if fitting:
        wanted.append("-- values that fit their silver types")
    return "\n".join([*wanted, *(f"AND ({f})" for f in fitting)])


def key_names(dataset: Dataset) -> tuple[str, ...]:
    return tuple(spark_identifier(dataset.column(name).silver_name) for name in dataset.dedup_key)


def key_list(dataset: Dataset) -> str:
    """The key as it stands after PARTITION BY."""
    names = key_names(dataset)
    whole = ", ".join(names)
    return f" {whole}" if fits(whole) else "\n" + textwrap.indent(filled(names, width=WIDTH), "  ")


def partition_column(dataset: Dataset) -> str:
    return spark_identifier(dataset.partition_date_col)


def rebuild(dataset: Dataset) -> str:
    return f"""-- The whole table anew.
-- step: rebuild
INSERT OVERWRITE {table_name(dataset.silver_table)} BY NAME
SELECT
  {hanging(lines(silver_names(dataset)))}
FROM {view_stem(dataset.name)}_newest;"""


def merge(dataset: Dataset) -> str:
    """Only the new rows of bronze: first what each is, then the merge of those that count."""
    return "\n\n".join(
        [
            *([_bounds(dataset)] if decides_date(dataset) else []),
            _classify(dataset),
            _append(dataset),
            _merge(dataset),
        ]
    )


def _bounds(dataset: Dataset) -> str:
    day, views = partition_column(dataset), view_stem(dataset.name)
    return f"""-- Of silver, only the dates from the first to the last new row are looked at.
-- step: bounds
DECLARE OR REPLACE VARIABLE merge_from DATE;

DECLARE OR REPLACE VARIABLE merge_to DATE;

SET VAR (merge_from, merge_to) = (SELECT min({day}), max({day}) FROM {views}_newest);"""


def _classify(dataset: Dataset) -> str:
    views = view_stem(dataset.name)
    return f"""-- What each new row is beside the row that silver holds under its key.
-- step: classify
CREATE OR REPLACE TEMPORARY VIEW {views}_classified AS
SELECT
  fresh.*,
  CASE
    WHEN held.kafka_offset IS NULL THEN 'kept'
    WHEN {_ORDER.format("fresh")}
      > {_ORDER.format("held")} THEN 'replaced'
    WHEN {_ORDER.format("fresh")}
      = {_ORDER.format("held")} THEN 'backfilled'
    ELSE 'duplicate'
  END AS outcome
FROM {views}_newest AS fresh
LEFT JOIN {table_name(dataset.silver_table)} AS held
  ON {hanging(_near(dataset))};"""


def _append(dataset: Dataset) -> str:
    return f"""-- Where no row is replaced, the engine runs this alone; else the merge alone.
-- step: append
INSERT INTO {table_name(dataset.silver_table)} BY NAME
SELECT
  {hanging(lines(silver_names(dataset)))}
FROM {view_stem(dataset.name)}_classified
WHERE outcome = 'kept';"""


def _merge(dataset: Dataset) -> str:
    names = silver_names(dataset)
    return f"""-- step: merge
MERGE INTO {table_name(dataset.silver_table)} AS held
USING (
  SELECT * FROM {view_stem(dataset.name)}_classified WHERE outcome IN ('kept', 'replaced')
) AS fresh
ON {same_key(dataset)}
WHEN MATCHED THEN UPDATE SET
  {hanging(lines(f"held.{name} = fresh.{name}" for name in names))}
WHEN NOT MATCHED THEN INSERT (
  {hanging(lines(names))}
) VALUES (
  {hanging(lines(f"fresh.{name}" for name in names))}
);"""


def _near(dataset: Dataset) -> str:
    """The same key, told so that files of other dates need not be read; MERGE takes no variables."""
    if not decides_date(dataset):
        return same_key(dataset)
    day = f"held.{partition_column(dataset)}"
    between = f"{day} BETWEEN session.merge_from AND session.merge_to"
    return f"{same_key(dataset)}\n  AND ({between} OR {day} IS NULL)"


def same_key(dataset: Dataset) -> str:
    """Where the key decides the date, only that date's files need to be looked at."""
    names = list(key_names(dataset))
    if decides_date(dataset):
        names.append(partition_column(dataset))
    return "\n  AND ".join(f"held.{name} <=> fresh.{name}" for name in names)


def decides_date(dataset: Dataset) -> bool:
    """Whether rows of one key are always of one date."""
    day = parse_value(dataset.partition_date_expr, dataset.bronze_types)
    return set(columns_of(day)) <= set(dataset.dedup_key)


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
