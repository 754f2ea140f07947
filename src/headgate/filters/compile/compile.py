"""A filter's document → its condition and its two statements. Pure: same document, same bytes."""

from __future__ import annotations

import hashlib

from headgate import __version__
from headgate.conditions import builder as build
from headgate.conditions.ast import And, Expr
from headgate.conditions.expr_literals import spark_identifier
from headgate.conditions.spark import to_spark
from headgate.core.sql.compile_fragments import comment, fold_lines
from headgate.errors import DeclarationError, Fault
from headgate.filters.compile.conditions import ConditionsError, conditions_of, ops_of
from headgate.filters.compile.model import CompiledFilter
from headgate.filters.compile.reading import path_column, paths_of, with_columns
from headgate.filters.loader import BODY
from headgate.filters.spec import COLUMNS, NUMBER_COLUMN, Filter, revision_of

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
