"""SQL that reads JSON records with strict_json: types, options, reason codes, and columns for drift.

strict_json is our own Spark function (docs/spark_functions.md) and the only JSON reader of every job.
Input: anything that fits `Records` (declared columns, time format, whether drift is kept); a dataset
and a source of a rule table both do. Output: SQL fragments; pure. Where drift is kept, bronze has the
columns `_extra` (undeclared fields) and `_missing` (absent ones); elsewhere both are reasons to refuse.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from headgate.conditions.literals import spark_identifier, spark_literal
from headgate.core.sql.fragments import (
    TABLE_PROPERTIES,
    call,
    lines,
    options,
    properties,
    schema,
)
from headgate.declarations.columns import Column, Records
from headgate.declarations.types import STRING, SqlType

EXTRA, MISSING = "_extra", "_missing"
# What a field's deviation begins with where fields are named: unknown, missing, of another type.
UNKNOWN_MARK, MISSING_MARK, RETYPED_MARK = "+", "-", "~"
DRIFT_REASONS = {
    "unknown_field": "the record has a field that is not declared",
    "missing_field": "the record lacks a declared field",
}
_COMMENTS = {
    EXTRA: "Fields that are no columns, as a JSON object",
    MISSING: "Declared fields that the record lacks, as a JSON list",
}


def own_columns(dataset: Records) -> tuple[str, ...]:
    """The columns that bronze has for drift."""
    return (EXTRA, MISSING) if dataset.keeps_drift else ()


def own_column_types(dataset: Records) -> list[str]:
    return [
        f"{name} STRING COMMENT {spark_literal(_COMMENTS[name])}" for name in own_columns(dataset)
    ]


def own_properties(dataset: Records) -> dict[str, str]:
    """Iceberg counts the values of these columns, so that a batch without drift costs no look."""
    return {f"write.metadata.metrics.column.{name}": "counts" for name in own_columns(dataset)}


# What strict_json adds to the declared columns.
ADDED_COLUMNS = (EXTRA, MISSING, "_reason_code", "_reason", "_drift")
# Names of the view's own columns: a field of the event cannot have them.
OWN_NAMES = frozenset(
    {"kafka_key", "kafka_value", "kafka_headers", "record", "_key", *ADDED_COLUMNS}
)
_DATES = ("DATE", "TIMESTAMP", "TIMESTAMP_LTZ")

# The codes of strict_json for a record that is no row, with the words that its reasons begin with.
REASONS: dict[str, str] = {
    "not_utf8": "the value is not UTF-8 text",
    "empty": "the value is empty",
    "duplicate_key": "a field stands twice in the record",
    "not_json": "the value is not JSON",
    "not_an_object": "the value is JSON but not an object",
    "trailing_text": "something follows the JSON object",
    "half_surrogate": "an escape is half of a surrogate pair",
    "wrong_type": "a field does not have its declared type",
    "out_of_range": "a number is too large for its type",
}


def json_type(column: Column) -> SqlType:
    """The type that a field is read as: times are read from their text by the reader itself."""
    if column.kafka_type.name == "STRING" and column.bronze_type.name in _DATES:
        return column.bronze_type
    return STRING if column.kafka_type.name == "JSON" else column.kafka_type


def read_record(
    dataset: Records, evolved: Collection[str] = (), more: Mapping[str, str] | None = None
) -> str:
    """The call that reads a record's value, with further options of its own."""
    fields = [f"{spark_identifier(c.name)} {json_type(c).spark}" for c in dataset.columns]
    chosen = options({**read_options(dataset, evolved), **(more or {})})
    return call("strict_json", ["value", schema(fields), chosen])


def read_options(dataset: Records, evolved: Collection[str] = ()) -> dict[str, str]:
    """The options of strict_json for these columns; those that would be empty are left out."""
    columns = dataset.columns
    listed = {
        "json": [c.name for c in columns if c.kafka_type.name == "JSON"],
        "evolved": [c.name for c in columns if c.name in evolved],
    }
    casts = [
        f"{spark_identifier(c.name)} {c.bronze_type.spark}"
        for c in columns
        if json_type(c) != c.bronze_type
    ]
    return {
        "drift": "keep" if dataset.keeps_drift else "refuse",
        **_time_options(dataset),
        **{name: _listed(names) for name, names in listed.items() if names},
        **({"casts": ", ".join(casts)} if casts else {}),
    }


def _listed(names: Iterable[str]) -> str:
    return ", ".join(spark_identifier(name) for name in names)


def _time_options(dataset: Records) -> dict[str, str]:
    names = {json_type(column).name for column in dataset.columns}
    formats = {"TIMESTAMP": "timestampNTZFormat", "TIMESTAMP_LTZ": "timestampFormat"}
    return {option: dataset.ts_format for name, option in formats.items() if name in names}


def added_columns(dataset: Records) -> str:
    """The columns of strict_json that are no columns of bronze."""
    kept = own_columns(dataset)
    return ", ".join(name for name in ADDED_COLUMNS if name not in kept)


def bronze_columns(dataset: Records) -> str:
    columns = [
        f"{spark_identifier(c.name)} {c.bronze_type.spark}"
        + (f" COMMENT {spark_literal(c.comment)}" if c.comment else "")
        for c in dataset.columns
    ]
    return lines([*columns, *own_column_types(dataset)])


def bronze_properties(dataset: Records) -> str:
    return properties({**TABLE_PROPERTIES, **own_properties(dataset)})
