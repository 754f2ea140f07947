"""The hasher takes a record exactly when strict_json does: by the shared cases, and by generated records."""

from __future__ import annotations

from random import Random

import pytest
from tests.support.dataset_events import events
from tests.support.strict_json import RecordCase, mutate_records, read_cases
from tests.support.strict_model import expect

from headgate.declarations.types import SqlType, parse_type
from headgate.errors import HeadgateError
from headgate.quality.record_parser import is_like, sound_fields

SEED = 23
# How these are written is not the hasher's matter, or it does not read them at all.
OTHER_OPTIONS = {
    *("json", "scalars", "casts", "drift", "framed"),
    *("dateFormat", "timestampFormat", "timestampNTZFormat"),
}
KINDS = {
    "id": "BIGINT",
    "name": "STRING",
    "amount": "DOUBLE",
    "price": "DECIMAL(10, 2)",
    "flag": "BOOLEAN",
    "n": "INT",
}


def is_taken(value: bytes, types: dict[str, SqlType]) -> bool:
    fields = sound_fields(value)
    return fields is not None and all(is_like(fields.get(name), types[name]) for name in types)


def read_types(case: RecordCase) -> dict[str, SqlType] | None:
    """The columns of a case; None where the hasher has no such type."""
    parts = (part.split(" ", 1) for part in case.columns.replace(", 2", ";2").split(", "))
    try:
        return {name: parse_type(kind.replace(";", ", ")) for name, kind in parts}
    except (HeadgateError, ValueError):
        return None


def test_the_hasher_takes_the_shared_cases_that_strict_json_accepts() -> None:
    compared, wrong = 0, []
    for case in read_cases():
        types = read_types(case)
        if types is None or OTHER_OPTIONS & case.options.keys():
            continue
        compared += 1
        if is_taken(case.value, types) != (case.code is None):
            wrong.append(case.name)
    assert wrong == []
    assert compared > 60


@pytest.mark.parametrize("seed", [SEED, SEED + 1])
def test_the_hasher_takes_the_generated_records_that_the_model_accepts(seed: int) -> None:
    types = {name: parse_type(kind) for name, kind in KINDS.items()}
    values = [*events(seed, 500), *mutate_records(Random(seed), 4_500)]
    outcomes = [(value, is_taken(value, types), expect(value, KINDS).code) for value in values]
    assert [one for one in outcomes if one[1] != (one[2] is None)] == []
    assert 1_000 < sum(taken for _, taken, _ in outcomes) < 4_000
