from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tools.declaration_schemas import (
    HASH_SCHEMA_FILE,
    RULES_SCHEMA_FILE,
    SCHEMA_FILE,
    TESTS_SCHEMA_FILE,
    dataset_schema,
    hash_contract_schema,
    rule_tests_schema,
    rules_schema,
)

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("file", "schema"),
    [
        (SCHEMA_FILE, dataset_schema),
        (RULES_SCHEMA_FILE, rules_schema),
        (TESTS_SCHEMA_FILE, rule_tests_schema),
        (HASH_SCHEMA_FILE, hash_contract_schema),
    ],
)
def test_the_schema_file_is_what_the_model_says(file: Path, schema: Callable[[], str]) -> None:
    assert (ROOT / file).read_text() == schema()
