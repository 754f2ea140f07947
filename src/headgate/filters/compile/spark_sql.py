"""Compiles a filter to Spark SQL: how a record becomes an event, the condition, the sink table and the insert.

`CompiledFilter.statements` are what a second person approves; `sql_hash` is their hash. `alone_sql` is the same
as a file for plain `spark-sql`, where the sink is a table of the lake instead of a topic.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from headgate import __version__
from headgate.conditions import builder as build
from headgate.conditions.ast import And, Column, Expr, Function, Literal, mapped, walk
from headgate.conditions.literals import spark_identifier
from headgate.conditions.spark_sql import to_spark
from headgate.core.sql.fragments import comment, fold_lines
from headgate.core.sql.script import indented
from headgate.core.sql.strict_json import ADDED_COLUMNS
from headgate.declarations.types import STRING
from headgate.errors import DeclarationError, Fault
from headgate.filters.compile.conditions import TEXT, VALUE, ConditionsError, conditions_of, ops_of
from headgate.filters.loader import BODY
from headgate.filters.spec import COLUMNS, JSON_COLUMN, NUMBER_COLUMN, Filter, revision_of


@dataclass(frozen=True)
class CompiledFilter:
    """`condition` is the whole question, the check of `ops` included; `sql` both `statements`.

    `sql_hash` is what an approval is bound to, together with the revision.
    """

    id: str
    revision: str
    topic: str
    source: str
    ops: tuple[str, ...]
    condition: Expr
    sql: str
    statements: tuple[str, str]
    sql_hash: str


TOMBSTONE = "tombstone"
_TEXTS = ",\n       ".join(f"{name} STRING" for name in COLUMNS)
# The records with the columns of their events. Where a record is no event, it has a reason_code.
# Whoever lists dead letters reads their reasons, so these do not quote what is in the header.
READ_VIEW = f"""CREATE OR REPLACE TEMPORARY VIEW router_read AS
SELECT
  partition,
  offset,
  timestamp,
  record.* EXCEPT ({", ".join(ADDED_COLUMNS)}),
  CASE
    WHEN record IS NULL THEN '{TOMBSTONE}'
    WHEN record._reason_code IS NOT NULL THEN record._reason_code
    WHEN record.id IS NULL OR record.id = '' THEN 'no_id'
  END AS reason_code,
  record._reason AS reason
FROM (
  SELECT
    partition,
    offset,
    timestamp,
    strict_json(
      value,
      '{_TEXTS}',
      map(
        'scalars', '{", ".join(COLUMNS)}',
        'casts', '{NUMBER_COLUMN} BIGINT',
        'masked', '{JSON_COLUMN}'
      )
    ) AS record
  FROM router_source
)"""
REFUSED_VIEW = f"""CREATE OR REPLACE TEMPORARY VIEW router_refused AS
SELECT
  partition,
  offset,
  reason_code,
  coalesce(reason, 'the event has no id') AS reason
FROM router_read
WHERE reason_code <> '{TOMBSTONE}'"""
# Of these kinds a value has a text that does not depend on how Java prints it.
KINDS = r"^(STRING|BOOLEAN|BIGINT|DECIMAL\\(.*)$"


def paths_of(condition: Expr) -> list[Function]:
    """The values inside the JSON column that a condition asks for, each once, in order."""
    nodes = (node for node in walk(condition) if isinstance(node, Function))
    return sorted({node for node in nodes if node.name in (TEXT, VALUE)}, key=to_spark)


def path_column(node: Function) -> str:
    """What a person calls it: `header_data.dealerId`, or the value there whatever its kind."""
    return path_name(node) if node.name == TEXT else f"value of {path_name(node)}"


def path_name(node: Function) -> str:
    """The field as a filter's document writes it: `header_data.dealerId`."""
    document, path = node.arguments
    return to_spark(document) + str(path.value if isinstance(path, Literal) else "").lstrip("$")


def with_columns(condition: Expr, names: Mapping[Function, str]) -> Expr:
    """The condition over columns that hold the values at its paths."""

    def change(node: Expr) -> Expr:
        name = names.get(node) if isinstance(node, Function) else None
        return node if name is None else Column(name, STRING)

    return mapped(condition, change)


def events_view(name: str, paths: Mapping[str, Function]) -> str:
    """The events, with a column for each of these values inside the JSON column.

    They are computed in a LATERAL VIEW: what is asked of the columns of a plain SELECT is pushed
    below it, and their expressions with it, so that every header would be parsed dozens of times.
    """
    clauses = ["SELECT *", "FROM router_read"]
    if paths:
        values = [
            f"{_path_value(node)} AS {spark_identifier(column)}" for column, node in paths.items()
        ]
        clauses += [
            f"LATERAL VIEW inline(array(struct(try_parse_json({JSON_COLUMN}) AS _header))) header",
            f"LATERAL VIEW inline(array(struct(\n{indented(values)}\n))) paths",
        ]
    return view(name, "\n".join([*clauses, "WHERE reason_code IS NULL"]))


def _path_value(node: Function) -> str:
    """What stands at the path of the parsed header: its text, or the value in some text."""
    path = to_spark(node.arguments[1])
    text = f"try_variant_get(_header, {path}, 'string')"
    if node.name == VALUE:
        return text
    kind = f"schema_of_variant(try_variant_get(_header, {path}, 'variant'))"
    return f"IF({kind} RLIKE '{KINDS}', {text}, NULL)"


def view(name: str, query: str) -> str:
    """The statement that gives a query a name."""
    return fold_lines(f"CREATE OR REPLACE TEMPORARY VIEW {name} AS\n{query}")


# What is sent on: everything but when the change was made.
SENT = tuple(name for name in COLUMNS if name != NUMBER_COLUMN)


def compile_filter(declared: Filter, file: str = BODY) -> CompiledFilter:
    """The filter made ready; raises DeclarationError with every fault that only compiling finds."""
    try:
        own = conditions_of(declared)
    except ConditionsError as error:
        faults = [Fault(file, None, one.pointer, one.what, one.fix) for one in error.faults]
        raise DeclarationError(faults) from None
    condition = build.conjunction([ops_of(declared), own])
    revision = revision_of(declared)
    statements = (_sink(declared), fold_lines(_insert(declared, named(condition))))
    sql = "\n\n".join([_header(declared, revision), *statements]) + "\n"
    return CompiledFilter(
        id=declared.id,
        revision=revision,
        topic=declared.output_topic,
        source=declared.source,
        ops=tuple(sorted(set(declared.ops), key="crud".index)),
        condition=condition,
        sql=sql,
        statements=statements,
        sql_hash=hashlib.sha256("\n\n".join(statements).encode()).hexdigest(),
    )


def named(condition: Expr) -> Expr:
    """The condition over columns called after the paths into the JSON column."""
    return with_columns(condition, {node: path_column(node) for node in paths_of(condition)})


def _header(declared: Filter, revision: str) -> str:
    words = (
        f"Filter {declared.id}: {declared.name}",
        f"Events of {declared.source} for {declared.consumer_id}, to {declared.output_topic}.",
        f"Revision {revision[:12]}, compiled by Headgate {__version__}.",
    )
    # Spark puts variables into `${…}`, in comments too.
    return "\n".join(comment(word.replace("${", "$ {")) for word in words)


def _sink(declared: Filter) -> str:
    columns = ",\n".join(f"  {spark_identifier(name)} STRING" for name in SENT)
    return f"CREATE TABLE IF NOT EXISTS {_table(declared)} (\n  key BINARY,\n{columns}\n);"


def _insert(declared: Filter, condition: Expr) -> str:
    columns = ",\n".join(f"  {spark_identifier(name)}" for name in SENT)
    return (
        f"INSERT INTO {_table(declared)}\n"
        f"SELECT\n  CAST(id AS BINARY) AS key,\n{columns}\n"
        f"FROM `{declared.source}`\n"
        f"WHERE {where(condition)};"
    )


def _table(declared: Filter) -> str:
    """Named after the topic; Spark's own catalog takes no hyphens, the lake's does."""
    return f"lake.filters.`{declared.output_topic}`"


def where(condition: Expr) -> str:
    """One condition a line."""
    parts = condition.items if isinstance(condition, And) else (condition,)
    if len(parts) == 1:
        return to_spark(parts[0])
    # Each is rendered as a part of the whole, so that brackets stand where they must.
    return "\n  AND ".join(to_spark(And((part,))) for part in parts)


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
