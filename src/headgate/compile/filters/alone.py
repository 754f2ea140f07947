"""A filter's SQL as a file that runs by itself in plain `spark-sql`.

Spark cannot insert into a Kafka table: run alone, the sink is a table of the lake. What the router
writes to the topic has the same rows.
"""

from __future__ import annotations

from collections.abc import Callable

from headgate.compile.filters.model import CompiledFilter
from headgate.compile.filters.reading import json_text, json_value, parsed, read
from headgate.compile.fragments import comment
from headgate.compile.rules.statement import select
from headgate.expr.json_conditions import TEXT, VALUE
from headgate.expr.literals import spark_identifier
from headgate.spec.filter import COLUMNS

FOLDER = "filters"


def alone_sql(compiled: CompiledFilter) -> str:
    """The whole file; `${BOOTSTRAP_SERVERS}` is filled from the settings."""
    parts = [
        _notes(compiled),
        _function(TEXT, "The text of a JSON value, as filters compare it.", json_text),
        _function(VALUE, "A JSON value in some text, NULL where there is none.", json_value),
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


def _function(name: str, words: str, body: Callable[[str, str], str]) -> str:
    return (
        f"{comment(words)}\n"
        f"CREATE OR REPLACE TEMPORARY FUNCTION {name}(document STRING, path STRING)\n"
        f"RETURNS STRING\nRETURN {body('try_parse_json(document)', 'path')};"
    )


def _source(compiled: CompiledFilter) -> str:
    return f"""CREATE OR REPLACE TEMPORARY VIEW router_source
USING kafka
OPTIONS (
  'kafka.bootstrap.servers' '${{BOOTSTRAP_SERVERS}}',
  'kafka.isolation.level' 'read_committed',
  'subscribe' '{compiled.source}',
  'startingOffsets' 'earliest',
  'endingOffsets' 'latest'
);"""


def _events(compiled: CompiledFilter) -> str:
    views = {"router_parsed": parsed("router_source"), "router_read": read("router_parsed")}
    views[f"`{compiled.source}`"] = select(
        [spark_identifier(name) for name in COLUMNS], "FROM router_read", "WHERE refusal IS NULL"
    )
    made = (
        f"CREATE OR REPLACE TEMPORARY VIEW {name} AS\n{query};" for name, query in views.items()
    )
    return "\n\n".join(made)
