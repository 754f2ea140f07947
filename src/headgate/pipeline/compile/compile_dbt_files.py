"""What dbt is told of a dataset beside its model: where silver is read, and what must hold of it."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator

from headgate.pipeline.compile.promises import Promise, date_is_never_null, promises
from headgate.pipeline.compile.staging import quoted, staging_model
from headgate.pipeline.spec import Dataset

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
