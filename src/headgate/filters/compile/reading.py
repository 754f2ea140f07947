"""How a record becomes an event, as Spark SQL: the columns, or why it is refused."""

from __future__ import annotations

from collections.abc import Mapping

from headgate.conditions.ast import Column, Expr, Function, Literal, mapped, walk
from headgate.conditions.expr_literals import spark_identifier
from headgate.conditions.spark import to_spark
from headgate.core.sql.bronze import ADDED_COLUMNS
from headgate.core.sql.compile_fragments import fold_lines
from headgate.core.sql.statement import indented
from headgate.declarations.spec_types import STRING
from headgate.filters.compile.conditions import TEXT, VALUE
from headgate.filters.spec import COLUMNS, JSON_COLUMN, NUMBER_COLUMN

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
