"""The tables of the lake that a rule table has; they do not depend on its rules."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from itertools import starmap

from headgate.core.sql.compile_fragments import (
    CATALOG,
    TABLE_PROPERTIES,
    dead_letter_table,
    properties,
)
from headgate.quality.compile.names import NAMESPACE, Names

NAMESPACE_STATEMENT = f"CREATE NAMESPACE IF NOT EXISTS {CATALOG}.{NAMESPACE}"

RESULTS = {
    "pk": "STRING",
    "action": "STRING",
    "dq_status": "STRING",
    "dq_reason": "STRING",
    "dq_severity": "STRING",
    "dq_rules": "ARRAY<STRING>",
    "dq_outcome": "STRING",
    "hash_onprem": "STRING",
    "hash_cloud": "STRING",
    "event_time": "TIMESTAMP",
    "window_start": "TIMESTAMP",
    "row": "STRING",
    "revision": "STRING",
    "processing_time": "TIMESTAMP",
    "kafka_topic": "STRING",
    "kafka_partition": "INT",
    "kafka_offset": "BIGINT",
    "kafka_timestamp": "TIMESTAMP",
}
PARTIALS = {
    "window_start": "TIMESTAMP",
    "env": "STRING",
    "dc": "STRING",
    "table_name": "STRING",
    "topic_name": "STRING",
    "kind": "STRING",
    "name": "STRING",
    "metric": "STRING",
    "severity": "STRING",
    "grp": "STRING",
    "n": "BIGINT",
    "matched": "BIGINT",
    "total": "DOUBLE",
    "nulls": "BIGINT",
    "sketch": "BINARY",
    "newest": "TIMESTAMP",
    "late": "BOOLEAN",
    "revision": "STRING",
    "range": "STRING",
    "batch_time": "TIMESTAMP",
}
KEYS = {
    "rule": "STRING",
    "key": "STRING",
    "event_time": "TIMESTAMP",
    "kafka_partition": "INT",
    "kafka_offset": "BIGINT",
    "batch_time": "TIMESTAMP",
}


def table_statements(names: Names, *, has_keys: bool = False) -> list[str]:
    """The statements that make the tables of a quality job; their columns do not depend on the rules."""
    tables = {names.results_table: RESULTS, names.partials_table: PARTIALS}
    if has_keys:
        tables[names.keys_table] = KEYS
    return [NAMESPACE_STATEMENT, *starmap(table_statement, tables.items()), *dead_letter_tables()]


def table_statement(
    name: str, columns: dict[str, str], values: Mapping[str, str] = TABLE_PROPERTIES
) -> str:
    """The statement that makes one table of ours."""
    listed = ",\n".join(f"  {column} {kind}" for column, kind in columns.items())
    given = textwrap.indent(properties(values), "  ")
    return (
        f"CREATE TABLE IF NOT EXISTS {name} (\n{listed}\n)\nUSING iceberg\n"
        f"TBLPROPERTIES (\n{given}\n)"
    )


def dead_letter_tables() -> list[str]:
    """The statements that make the dead-letter table and its namespace, each for itself."""
    return [statement.rstrip(";") for statement in dead_letter_table().split(";\n\n")]
