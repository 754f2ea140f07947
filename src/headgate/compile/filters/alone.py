"""A filter's SQL as a file that runs by itself in plain `spark-sql`.

Spark cannot insert into a Kafka table: run alone, the sink is a table of the lake. What the router
writes to the topic has the same rows.
"""

from __future__ import annotations

from headgate.compile.filters.model import CompiledFilter
from headgate.compile.filters.reading import (
    beside,
    parsed,
    path_column,
    path_sql,
    paths_of,
    read,
)
from headgate.compile.fragments import comment
from headgate.compile.rules.statement import nested, select
from headgate.expr.literals import spark_identifier
from headgate.spec.filter import COLUMNS, JSON_COLUMN

FOLDER = "filters"
BROKER = "${BOOTSTRAP_SERVERS}"


def alone_sql(compiled: CompiledFilter) -> str:
    """The whole file; `${BOOTSTRAP_SERVERS}` is filled from the settings."""
    parts = [
        _notes(compiled),
        _source(compiled),
        _events(compiled),
        "CREATE NAMESPACE IF NOT EXISTS lake.filters;",
        compiled.sql,
    ]
    return "\n\n".join(parts)


def _notes(compiled: CompiledFilter) -> str:
    words = (
        "Run alone, it reads all there is on the topic and appends to a table of the lake:",
        "  spark-sql --properties-file build/conf/spark-defaults.conf"
        f" -f build/sql/{FOLDER}/{compiled.id}.sql",
        "The router asks the same of every record, for all filters at once, and writes to the topic.",
    )
    return "\n".join(comment(word) for word in words)


def _source(compiled: CompiledFilter) -> str:
    return f"""CREATE OR REPLACE TEMPORARY VIEW router_source
USING kafka
OPTIONS (
  'kafka.bootstrap.servers' '{BROKER}',
  'kafka.isolation.level' 'read_committed',
  'subscribe' '{compiled.source}',
  'startingOffsets' 'earliest',
  'endingOffsets' 'latest'
);"""


def _events(compiled: CompiledFilter) -> str:
    """The events under the topic's name, with the values inside the JSON column that are asked for."""
    sound = select(
        [spark_identifier(name) for name in COLUMNS], "FROM router_read", "WHERE refusal IS NULL"
    )
    paths = paths_of(compiled.condition)
    if paths:
        header = beside(nested(sound), {"_header": f"try_parse_json({JSON_COLUMN})"}, "header")
        columns = {path_column(node): path_sql("_header", node) for node in paths}
        sound = beside(nested(header), columns, "paths")
    views = {
        "router_parsed": parsed("router_source"),
        "router_read": read("router_parsed"),
        f"`{compiled.source}`": sound,
    }
    made = (
        f"CREATE OR REPLACE TEMPORARY VIEW {name} AS\n{query};" for name, query in views.items()
    )
    return "\n\n".join(made)
