"""Drift: the fragments that see, keep and name what deviates from the declared fields.

Where the contract keeps such records, bronze has a column for the fields that nobody declared and
one for the names of those that a record lacks. Where it does not, they are reasons to refuse.
"""

from __future__ import annotations

import textwrap
from collections.abc import Collection

from headgate.conditions.expr_literals import spark_literal
from headgate.declarations.records import Records
from headgate.pipeline.spec import Dataset

EXTRA, MISSING = "_extra", "_missing"
# What a field's deviation begins with where fields are named: unknown, missing, of another type.
UNKNOWN_MARK, MISSING_MARK, RETYPED_MARK = "+", "-", "~"
REASONS = {
    "unknown_field": "the record has a field that is not declared",
    "missing_field": "the record lacks a declared field",
}
_COMMENTS = {
    EXTRA: "Fields that are no columns, as a JSON object",
    MISSING: "Declared fields that the record lacks, as a JSON list",
}


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
