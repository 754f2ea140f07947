"""Drift: the fragments that see, keep and name what deviates from the declared fields.

Where the contract keeps such records, bronze has a column for the fields that nobody declared and
one for the names of those that a record lacks. Where it does not, they are reasons to refuse.
"""

from __future__ import annotations

import textwrap
from collections.abc import Collection

from headgate.compile.fragments import call, hanging, lines
from headgate.compile.records import Records
from headgate.expr.literals import spark_literal
from headgate.spec.dataset import Dataset

EXTRA, MISSING = "_extra", "_missing"
# What a field's deviation begins with where fields are named: unknown, missing, of another type.
UNKNOWN_MARK, MISSING_MARK, RETYPED_MARK = "+", "-", "~"
REASONS = {
    "unknown_field": "the record has a field that is not declared",
    "missing_field": "the record lacks a declared field",
}
_KEYS = "json_object_keys(kafka_text)"
_COMMENTS = {
    EXTRA: "Fields that are no columns, as a JSON object",
    MISSING: "Declared fields that the record lacks, as a JSON list",
}
# How many names a dead letter's words give, and how much of each.
_NAMED, _NAME_WIDTH = 20, 40


def notes(dataset: Dataset, evolved: Collection[str]) -> list[str]:
    """What the header says of fields that are not declared."""
    said = {
        "evolve": f"Fields that are no columns are kept in {EXTRA}; the engine makes columns of them.",
        "freeze": f"Fields that are no columns are kept in {EXTRA}, and the columns stay as they are.",
        "quarantine": "A record with an unknown field or without a declared one is refused.",
    }
    came = textwrap.wrap(f"Columns that the topic brought: {', '.join(evolved)}.", 96)
    return [f"Contract {dataset.contract}: {said[dataset.contract]}", *(came if evolved else ())]


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


def own_values(dataset: Records, evolved: Collection[str]) -> list[str]:
    """The two columns; a record of the usual shape is not looked at again."""
    if not dataset.keeps_drift:
        return []
    fields = call("from_json", ["if(_shape IS NULL, kafka_text, NULL)", "'MAP<STRING, VARIANT>'"])
    strange = call("map_filter", [fields, f"(field, value) -> {_is_unknown(dataset)}"])
    keys = "json_object_keys(if(_shape = 'whole', NULL, kafka_text))"
    absent = call("array_except", [_array(declared(dataset, evolved)), keys])
    extra = call("nullif", [call("to_json", [strange]), "'{}'"])
    lacking = call("nullif", [call("to_json", [absent]), "'[]'"])
    return [f"{extra} AS {EXTRA}", f"{lacking} AS {MISSING}"]


def refusals(dataset: Records, evolved: Collection[str]) -> list[tuple[str, str]]:
    """What is asked of a record where the contract is to refuse any deviation."""
    if dataset.keeps_drift:
        return []
    unknown, missing = _unknown(dataset, _KEYS), _missing(dataset, evolved, _KEYS)
    return [(f"size({unknown}) > 0", "unknown_field"), (f"size({missing}) > 0", "missing_field")]


def words(dataset: Records) -> dict[str, str]:
    """What is said of a record that is refused for its fields."""
    if dataset.keeps_drift:
        return {}
    named = f"transform(slice(_drift, 1, {_NAMED}), field -> left(field, {_NAME_WIDTH}))"
    return {
        code: call("concat_ws", ["'; '", spark_literal(said), named])
        for code, said in REASONS.items()
    }


def deviations(dataset: Records, evolved: Collection[str]) -> str:
    """The fields of a refused record that deviate, each with its mark."""
    retyped = f"transform(map_keys(_unread), field -> concat('{RETYPED_MARK}', field))"
    branches = [f"WHEN _reason_code = 'wrong_type' THEN {retyped}"]
    if not dataset.keeps_drift:
        marked = [
            call("transform", [_unknown(dataset, "map_keys(_raw)"), _marked(UNKNOWN_MARK)]),
            call(
                "transform", [_missing(dataset, evolved, "map_keys(_raw)"), _marked(MISSING_MARK)]
            ),
        ]
        codes = ", ".join(f"'{code}'" for code in REASONS)
        found = hanging(call("concat", marked))
        branches.append(f"WHEN _reason_code IN ({codes}) THEN {found}")
    return "\n".join(["CASE", *(f"  {branch}" for branch in branches), "END"])


def declared(dataset: Records, evolved: Collection[str]) -> list[str]:
    """The fields that a record must have: not those that came by themselves."""
    return [column.name for column in dataset.columns if column.name not in evolved]


def _unknown(dataset: Records, keys: str) -> str:
    return call("array_except", [keys, _array([column.name for column in dataset.columns])])


def _missing(dataset: Records, evolved: Collection[str], keys: str) -> str:
    return call("array_except", [_array(declared(dataset, evolved)), keys])


def _is_unknown(dataset: Records) -> str:
    names = [spark_literal(column.name) for column in dataset.columns]
    return f"field NOT IN (\n  {hanging(lines(names))}\n)"


def _array(names: Collection[str]) -> str:
    return call("array", [spark_literal(name) for name in names])


def _marked(mark: str) -> str:
    return f"field -> concat('{mark}', field)"
