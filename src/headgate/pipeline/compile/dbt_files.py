"""The dbt files of a dataset: staging model, source, and the column tests its quality filters allow.

A filter such as `x > 0` guarantees a property of the silver column, which becomes a dbt test; what no
filter guarantees is tested as a warning.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, replace

from headgate.conditions import ast as tree
from headgate.conditions.ast import Expr
from headgate.conditions.literals import RESERVED
from headgate.conditions.parser import parse_condition, parse_value
from headgate.core.sql.fragments import view_stem
from headgate.declarations.columns import RECORD_TIME, Column
from headgate.pipeline.spec import Dataset

_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
# Words that DuckDB reserves beyond Spark's.
_DUCKDB_RESERVED = frozenset(
    """
    ANALYSE ANALYZE ASOF ASYMMETRIC BINARY BY COLUMNS CONCURRENTLY DEFERRABLE DESCRIBE DO FREEZE
    GENERATED GLOB INITIALLY ISNULL LAMBDA NOTNULL PIVOT PIVOT_LONGER PIVOT_WIDER PLACING POSITIONAL
    QUALIFY RETURNING SHOW SIMILAR SUMMARIZE SYMMETRIC TABLESAMPLE TRY_CAST UNPACK UNPIVOT
    VARIADIC VERBOSE
    """.split()
)


def staging_model(dataset: Dataset) -> str:
    return f"stg_{view_stem(dataset.name)}"


def staging_file(dataset: Dataset) -> str:
    return f"{staging_model(dataset)}.sql"


def staging_columns(dataset: Dataset) -> str:
    """Silver's columns; of those that say where a row came from, only when it was taken in."""
    names = (
        dataset.surrogate_key_name,
        *(column.silver_name for column in dataset.columns),
        dataset.partition_date_col,
        "ingestion_ts",
    )
    return ",\n".join(quoted(name) for name in names)


def quoted(name: str) -> str:
    """A name in DuckDB's SQL, which folds case and has its own keywords."""
    reserved = name.upper() in RESERVED or name.upper() in _DUCKDB_RESERVED
    bare = _PLAIN.fullmatch(name) and not reserved
    return name if bare else '"' + name.replace('"', '""') + '"'


def staging_source(dataset: Dataset) -> str:
    """dbt's own call, filled when dbt runs."""
    schema, table = dataset.silver_table.split(".", 1)
    return f"{{{{ source('{schema}', '{table}') }}}}"


@dataclass(frozen=True)
class Promise:
    """Of one column: never NULL, above zero, at least zero, one of these values."""

    not_null: bool = False
    positive: bool = False
    or_zero: bool = False
    values: tuple[str | int, ...] = ()

    def __and__(self, other: Promise) -> Promise:
        return Promise(
            self.not_null or other.not_null,
            self.positive or other.positive,
            self.or_zero or other.or_zero,
            self.values or other.values,
        )


def promises(dataset: Dataset) -> dict[str, Promise]:
    """By the column's name in bronze; a row that fits no silver type is filtered, so all hold there."""
    columns = {column.name: column for column in dataset.columns}
    found = {RECORD_TIME: Promise(not_null=True)}
    for text in dataset.quality_filters:
        for name, promise in _of(parse_condition(text, dataset.bronze_types)):
            if name in columns:
                found[name] = found.get(name, Promise()) & _after_cast(columns[name], promise)
    return found


def date_is_never_null(dataset: Dataset, found: dict[str, Promise]) -> bool:
    """Whether the partition date follows from columns that are never NULL."""
    day = parse_value(dataset.partition_date_expr, dataset.bronze_types)
    item = day.item if isinstance(day, tree.Cast) else day
    if not isinstance(item, tree.Column) or not (item.type.is_time or item.type.name == "DATE"):
        return False
    return found.get(item.name, Promise()).not_null


def _of(condition: Expr) -> Iterator[tuple[str, Promise]]:
    match condition:
        case tree.And(items=items):
            for item in items:
                yield from _of(item)
        case tree.Or(items=(tree.IsNull(item=tree.Column(name=name)), other)):
            yield from ((n, replace(p, not_null=False)) for n, p in _of(other) if n == name)
        case tree.Not(item=tree.IsNull(item=tree.Column(name=name))):
            yield name, Promise(not_null=True)
        case tree.Between(item=tree.Column(name=name), low=tree.Literal(value=low)):
            yield name, _above(low, strictly=False)
        case tree.In(item=tree.Column(name=name), options=options):
            yield name, Promise(not_null=True, values=_values(options))
        case tree.Compare(left=tree.Column(name=name), right=tree.Literal(value=value)):
            yield name, _compared(condition.operator, value)
        case _:
            pass


def _compared(operator: str, value: object) -> Promise:
    if operator == "<=>":
        return Promise(not_null=value is not None)
    above = operator in (">", ">=")
    return _above(value, strictly=operator == ">") if above else Promise(not_null=True)


def _above(value: object, *, strictly: bool) -> Promise:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return Promise(not_null=True)
    positive = value > 0 or (strictly and value == 0)
    return Promise(not_null=True, positive=positive, or_zero=value == 0 and not strictly)


def _values(options: tuple[tree.Literal, ...]) -> tuple[str | int, ...]:
    """All of them or none; dbt would read a quote or a brace in a text as its own."""
    values = [option.value for option in options]
    plain = [v for v in values if isinstance(v, str | int) and not isinstance(v, bool)]
    odd = any(mark in str(value) for value in plain for mark in "'{")
    return tuple(plain) if len(plain) == len(values) and not odd else ()


def _after_cast(column: Column, promise: Promise) -> Promise:
    """Rounding keeps the order but may make a small number zero; text may come out otherwise."""
    before, after = column.bronze_type, column.silver_type
    if before == after or (before.is_integral and after.is_integral):
        return promise
    if not after.is_numeric:
        return Promise(not_null=promise.not_null)
    rounded = promise.positive or promise.or_zero
    return replace(promise, positive=False, or_zero=rounded, values=())


_WARN = "config: {severity: warn}"


def variable_stem(table: str) -> str:
    """What the names of a table's dbt variables begin with."""
    return table.replace(".", "__")


def source_entry(dataset: Dataset, manifest: str) -> str:
    """The YAML file that makes the silver table a source of dbt."""
    schema, table = dataset.silver_table.split(".", 1)
    stem = variable_stem(dataset.silver_table)
    return f"""# Compiled from {manifest}; `headgate dataset scaffold {dataset.name}` merges changes into it.
version: 2

sources:
  - name: {schema}
    tables:
      - name: {table}
        description: Rows of {dataset.name} after quality filters and deduplication.
        config:
          # `headgate dbt` finds both through the catalog: the version hint may be stale after a kill.
          meta:
            external_location: >-
              iceberg_scan('{{{{ var("{stem}_folder", "") }}}}', allow_moved_paths=true,
              version='{{{{ var("{stem}_version", "") }}}}')
          loaded_at_field: ingestion_ts
          freshness:
            warn_after: {{count: 24, period: hour}}
            error_after: {{count: 48, period: hour}}
"""


def model_tests(dataset: Dataset, manifest: str) -> str:
    """The YAML file that says what must hold of the staging model."""
    columns = "\n".join(_columns(dataset))
    return f"""# Compiled from {manifest}; `headgate dataset scaffold {dataset.name}` merges changes into it.
version: 2

models:
  - name: {staging_model(dataset)}
    description: Every row of {dataset.silver_table}, one snapshot of it.
    columns:
{textwrap.indent(columns, "      ")}
"""


def _columns(dataset: Dataset) -> Iterator[str]:
    found = promises(dataset)
    keyed = set(dataset.dedup_key) <= set(dataset.surrogate_key_fields)
    words = f"MD5 over {', '.join(dataset.surrogate_key_fields)}."
    yield _column(dataset.surrogate_key_name, words, ["not_null", _unique(sure=keyed)])
    for column in dataset.columns:
        promise = found.get(column.name, Promise())
        tests = [*_tests(promise, needs_time=column.name == dataset.event_ts_col)]
        yield _column(column.silver_name, column.comment or "", tests)
    day = "not_null" if date_is_never_null(dataset, found) else _warned("not_null")
    yield _column(dataset.partition_date_col, "The silver table's partition.", [day])
    yield _column("ingestion_ts", "When bronze took the record in.", [])


def _tests(promise: Promise, *, needs_time: bool) -> Iterator[str]:
    if promise.not_null:
        yield "not_null"
    elif needs_time:
        yield _warned("not_null")
    if promise.positive:
        yield "positive_value"
    elif promise.or_zero:
        yield "positive_value:\n    arguments: {or_zero: true}"
    if promise.values:
        quote = ", quote: false" if isinstance(promise.values[0], int) else ""
        listed = ", ".join(scalar(value) for value in promise.values)
        yield f"accepted_values:\n    arguments: {{values: [{listed}]{quote}}}"


def _unique(*, sure: bool) -> str:
    return "unique" if sure else _warned("unique")


def _warned(test: str) -> str:
    """What no filter promises is worth a word, but is no fault."""
    return f"{test}:\n    {_WARN}"


def _column(name: str, words: str, tests: list[str]) -> str:
    lines = [f"- name: {scalar(name)}"]
    if quoted(name) != name:
        lines.append("  quote: true")
    if words:
        lines.append(f"  description: {scalar(_as_written(words))}")
    if tests:
        lines.append("  data_tests:")
        lines += [textwrap.indent(f"- {test}", "    ") for test in tests]
    return "\n".join(lines)


def scalar(value: str | int) -> str:
    """A YAML scalar that reads back as exactly this value: text stands in quotes unless plain."""
    if isinstance(value, int) or (value.isidentifier() and value.isascii() and not _special(value)):
        return str(value)
    return json.dumps(value, ensure_ascii=False)


def _special(word: str) -> bool:
    return word.lower() in {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}


def _as_written(words: str) -> str:
    """dbt renders descriptions with Jinja; these are none."""
    return f"{{% raw %}}{words}{{% endraw %}}" if "{" in words else words
