"""A filter's SQL as a file that runs by itself in plain `spark-sql`.

Spark cannot insert into a Kafka table: run alone, the sink is a table of the lake. What the router
writes to the topic has the same rows.
"""

from __future__ import annotations

from headgate.core.sql.compile_fragments import comment
from headgate.filters.compile.model import CompiledFilter
from headgate.filters.compile.reading import READ_VIEW, events_view, path_column, paths_of

FOLDER = "filters"
BROKER = "${BOOTSTRAP_SERVERS}"


def alone_sql(compiled: CompiledFilter) -> str:
    """The whole file; `${BOOTSTRAP_SERVERS}` is filled from the settings."""
    paths = {path_column(node): node for node in paths_of(compiled.condition)}
    parts = [
        _notes(compiled),
        _source(compiled),
        f"{READ_VIEW};",
        f"{events_view(f'`{compiled.source}`', paths)};",
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
