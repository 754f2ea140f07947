"""Pieces of Spark SQL text that all compilers share: names of tables and jobs, layout, comments.

Each piece begins in the first column; whoever lays it out indents it. Long lines and long literals
are folded here, never inside of a literal, a quoted name or a comment. The dead-letter table has
its one definition here.
Casts never raise: a value is NULL where it has no counterpart, and of texts only those in a known
form are cast.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence

from headgate import __version__
from headgate.conditions.ast import Cast, Column
from headgate.conditions.literals import spark_identifier, spark_literal
from headgate.conditions.spark_sql import to_spark
from headgate.conditions.type_coercion import FORMS, formed
from headgate.declarations.types import STRING, SqlType

CATALOG = "lake"
DEAD_LETTERS_TABLE = "headgate.dead_letters"
DEAD_LETTERS = f"{CATALOG}.{DEAD_LETTERS_TABLE}"
# Staging needs write.wap.enabled; few metadata files keep the table's folder readable.
TABLE_PROPERTIES = {
    "format-version": "2",
    "write.format.default": "parquet",
    "write.parquet.compression-codec": "snappy",
    "write.wap.enabled": "true",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "50",
}
# A piece is indented where it is laid out, so this leaves room in a line of 100.
WIDTH = 88
# Of a line in a rule set's SQL, and of a literal in it, which has an indent and a comma beside it.
LONGEST_LINE, LONGEST_LITERAL = 140, 100
# Of a line with several columns, before it is indented.
LONGEST_FILLED = 128
# Text in which no word is SQL: comments, names in backticks, literals.
QUOTED = re.compile(r"--[^\n]*|`[^`]*`|'(?:\\.|[^'\\])*'", re.DOTALL)
# What stands in one line with what follows it.
_BOUND = re.compile(r"(\b(?:AND|AS|BY|INTERVAL|IS|NOT|OR|THEN|TIMESTAMP_LTZ)|\bDECIMAL\(\d+,) ")
_CHARACTER = re.compile(r"\\u[0-9A-F]{4}|\\U[0-9A-F]{8}|\\.|.", re.DOTALL)
# What stands for a blank and the end of a line where no line may be broken.
_FIX, _RELEASE = str.maketrans(" \n", "\0\1"), str.maketrans("\0\1", " \n")


def job_name(kind: str, dataset: str) -> str:
    """The job of this kind for a dataset, as runs, the ledger and dead letters name it."""
    return f"{kind}-{dataset}"


def table_name(name: str) -> str:
    """`schema.table` of a manifest as a table of our catalog."""
    schema, table = name.split(".", 1)
    return f"{CATALOG}.{spark_identifier(schema)}.{spark_identifier(table)}"


def namespace(name: str) -> str:
    return f"{CATALOG}.{spark_identifier(name.split('.', 1)[0])}"


def view_stem(dataset: str) -> str:
    """What the names of a dataset's views begin with: a hyphen cannot stand in a bare name."""
    return dataset.replace("-", "_")


def lines(items: Iterable[str]) -> str:
    """One item a line."""
    return ",\n".join(items)


def filled(columns: Sequence[str], least: int = LONGEST_FILLED, width: int = LONGEST_FILLED) -> str:
    """Several columns a line, as many as it takes; one of `least` characters or more has its own line."""
    rows: list[str] = []
    is_open = False
    for column in columns:
        is_short = "\n" not in column and len(column) < least
        if is_open and is_short and len(f"{rows[-1]}, {column}") <= width:
            rows[-1] += f", {column}"
        else:
            rows.append(column)
        is_open = is_short
    return ",\n".join(rows)


def call(function: str, arguments: Sequence[str]) -> str:
    """A call on one line, or with one argument a line."""
    whole = f"{function}({', '.join(arguments)})"
    if fits(whole):
        return whole
    return f"{function}(\n{textwrap.indent(lines(arguments), '  ')}\n)"


def options(values: Mapping[str, str]) -> str:
    """A Spark `map(…)` of options."""
    pairs = [f"{spark_literal(key)}, {spark_literal(value)}" for key, value in values.items()]
    return call("map", pairs)


def branch(condition: str, result: str) -> str:
    """A branch of a CASE, on one line where it fits."""
    whole = f"WHEN {condition} THEN {result}"
    if fits(whole) or condition.endswith("\n)") or result.endswith("\n)"):
        return whole
    return f"WHEN {hanging(condition)}\n  THEN {hanging(result)}"


def hanging(text: str, by: int = 2) -> str:
    """All lines but the first moved to the right."""
    return text.replace("\n", "\n" + " " * by)


def fits(text: str) -> bool:
    return "\n" not in text and len(text) <= WIDTH


def fold_lines(sql: str) -> str:
    """Break lines that are too long, at blanks outside of literals, quoted names and comments."""
    fixed = QUOTED.sub(lambda quoted: quoted[0].translate(_FIX), _BOUND.sub("\\1\0", sql))
    return "\n".join(map(_fold_line, fixed.split("\n"))).translate(_RELEASE)


def _fold_line(line: str) -> str:
    if max(map(len, line.split("\1"))) <= LONGEST_LINE:
        return line
    indent = " " * (len(line) - len(line.lstrip(" ")) + 4)
    return textwrap.fill(
        line,
        LONGEST_LINE,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def split_literals(sql: str) -> str:
    """Write each long literal of an expression as several: Spark joins those that follow each other."""
    return QUOTED.sub(_split_literal, sql)


def _split_literal(quoted: re.Match[str]) -> str:
    if quoted[0][0] != "'" or len(quoted[0]) <= LONGEST_LITERAL:
        return quoted[0]
    pieces = [""]
    for word in re.findall(r"[^ ]* ?", quoted[0][1:-1]):
        for part in [word] if len(word) < WIDTH else _CHARACTER.findall(word):
            if len(pieces[-1] + part) > LONGEST_LITERAL:
                pieces.append("")
            pieces[-1] += part
    return " ".join(f"'{piece}'" for piece in pieces)


def schema(fields: Iterable[str]) -> str:
    """A schema as one literal over several lines; Spark's parser does not mind the blanks."""
    return "'" + ",\n ".join(spark_literal(field)[1:-1] for field in fields) + "'"


def properties(values: Mapping[str, str] = TABLE_PROPERTIES) -> str:
    return lines(f"{spark_literal(key)} = {spark_literal(value)}" for key, value in values.items())


def comment(words: str) -> str:
    """A comment of one line: whatever the words, none ends it or reaches beyond it.

    Spark takes the next line into a comment that ends in a backslash.
    """
    line = "".join(letter if letter.isprintable() else " " for letter in words)
    return f"-- {line} " if line.endswith("\\") else f"-- {line}"


def header(title: str, manifest: str, revision: str, *notes: str) -> str:
    """What a reader needs first: what it is, where it comes from, which revision."""
    words = (
        title,
        f"Compiled from {manifest}, revision {revision[:12]}, by Headgate {__version__}.",
        *notes,
    )
    return "\n".join(comment(word) for word in words)


def alone(dataset: str, file: str) -> tuple[str, str]:
    """How to run a file by hand, as notes for its header."""
    return (
        "The ledger does not know of what is run by hand: try it on a copy of the tables.",
        f"  spark-sql --properties-file build/conf/spark-defaults.conf -f build/sql/{dataset}/{file}",
    )


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
{textwrap.indent(properties(), "  ")}
);"""


def tried(name: str, source: SqlType, target: SqlType) -> str:
    """A column whose type is known."""
    if source != STRING or target.name not in FORMS:
        return f"try_cast({spark_identifier(name)} AS {target.spark})"
    return to_spark(Cast(formed(Column(name, STRING), target), target))


def tried_of_any(name: str, target: SqlType) -> str:
    """A column of a table whose types are not known here; Spark decides by them when it plans."""
    column, form = spark_identifier(name), FORMS.get(target.name)
    kind = "TIMESTAMP_LTZ" if target.name == "TIMESTAMP_LTZ" else target.spark
    value = f"try_cast({column} AS {kind})"
    if form is None:
        return value
    matches = f"regexp_like(CAST({column} AS STRING), {spark_literal(form.pattern)})"
    whole = f"CASE WHEN typeof({column}) <> 'string' OR {matches} THEN {value} END"
    if fits(whole):
        return whole
    return f"CASE\n  WHEN typeof({column}) <> 'string'\n    OR {matches}\n  THEN {value}\nEND"
