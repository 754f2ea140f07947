from __future__ import annotations

from pathlib import Path

from headgate.spec.schema import SCHEMA_FILE, dataset_schema

ROOT = Path(__file__).parents[3]


def test_the_schema_file_is_what_the_model_says() -> None:
    assert (ROOT / SCHEMA_FILE).read_text() == dataset_schema()
