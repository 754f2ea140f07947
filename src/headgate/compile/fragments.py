"""Pieces of SQL text that bronze and silver share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headgate import __version__
from headgate.expr.literals import spark_identifier, spark_literal

CATALOG = "lake"
DEAD_LETTERS = f"{CATALOG}.headgate.dead_letters"
# Staging needs write.wap.enabled; few metadata files keep the table's folder readable.
TABLE_PROPERTIES = {
    "format-version": "2",
    "write.format.default": "parquet",
    "write.parquet.compression-codec": "snappy",
    "write.wap.enabled": "true",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "50",
}


def table_name(name: str) -> str:
    """`schema.table` of a manifest as a table of our catalog."""
    schema, table = name.split(".", 1)
    return f"{CATALOG}.{spark_identifier(schema)}.{spark_identifier(table)}"


def namespace(name: str) -> str:
    return f"{CATALOG}.{spark_identifier(name.split('.', 1)[0])}"


def lines(items: Iterable[str], indent: int = 2, end: str = ",") -> str:
    """One item a line."""
    pad = " " * indent
    return f"{end}\n".join(pad + item for item in items)


def options(values: Mapping[str, str]) -> str:
    """A Spark `map(…)` of options."""
    pairs = (f"{spark_literal(key)}, {spark_literal(value)}" for key, value in values.items())
    return f"map({', '.join(pairs)})"


def properties(values: Mapping[str, str] = TABLE_PROPERTIES) -> str:
    return lines(f"{spark_literal(key)} = {spark_literal(value)}" for key, value in values.items())


def header(title: str, manifest: str, revision: str, *notes: str) -> str:
    """What a reader needs first: what it is, where it comes from, which revision."""
    words = (
        title,
        f"Compiled from {manifest}, revision {revision[:12]}, by Headgate {__version__}.",
        *notes,
    )
    return "\n".join(f"-- {word}" for word in words)


def dead_letter_table() -> str:
    """The statement that makes the dead-letter table, the same for every job."""
    return f"""CREATE NAMESPACE IF NOT EXISTS {CATALOG}.headgate;

CREATE TABLE IF NOT EXISTS {DEAD_LETTERS} (
  job STRING,
  revision STRING,
  reason_code STRING,
  reason STRING,
  kafka_topic STRING,
  kafka_partition INT,
  kafka_offset BIGINT,
  kafka_timestamp TIMESTAMP,
  kafka_key BINARY,
  kafka_value BINARY,
  kafka_headers ARRAY<STRUCT<key: STRING, value: BINARY>>,
  refused_at TIMESTAMP
)
USING iceberg
TBLPROPERTIES (
{properties()}
);"""
