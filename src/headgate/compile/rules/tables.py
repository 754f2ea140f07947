"""The tables of the lake that a rule table has; they do not depend on its rules."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

from headgate.compile.fragments import CATALOG, TABLE_PROPERTIES, dead_letter_table, properties
from headgate.compile.rules.model import JudgedTable
from headgate.compile.rules.names import NAMESPACE, Names
from headgate.compile.rules.unique import has_key_table

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
    "held": "BIGINT",
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


def table_statements(judged: JudgedTable) -> list[str]:
    names = Names(judged.table.name)
    found = [
        "-- The tables; their columns do not depend on the rules, so that new rules change none.\n"
        f"-- step: table\nCREATE NAMESPACE IF NOT EXISTS {CATALOG}.{NAMESPACE};",
        table_statement(names.results_table, RESULTS),
        table_statement(names.partials_table, PARTIALS),
    ]
    if has_key_table(judged):
        found.append(table_statement(names.keys_table, KEYS))
    return [*found, dead_letter_table()]


def table_statement(
    name: str, columns: dict[str, str], values: Mapping[str, str] = TABLE_PROPERTIES
) -> str:
    """The statement that makes one table of ours."""
    listed = ",\n".join(f"  {column} {kind}" for column, kind in columns.items())
    given = textwrap.indent(properties(values), "  ")
    return (
        f"CREATE TABLE IF NOT EXISTS {name} (\n{listed}\n)\nUSING iceberg\n"
        f"TBLPROPERTIES (\n{given}\n);"
    )
