"""The JSON Schema of a dataset manifest, for editors that complete and check as one types."""

from __future__ import annotations

from pathlib import Path

import orjson
from pydantic import TypeAdapter

from headgate.spec.dataset import Dataset

SCHEMA_FILE = Path("schemas/dataset.schema.json")
_DRAFT = "https://json-schema.org/draft/2020-12/schema"


def dataset_schema() -> str:
    """The schema as JSON text, the same bytes every time."""
    body = {"$schema": _DRAFT} | TypeAdapter(Dataset).json_schema()
    return orjson.dumps(body, option=orjson.OPT_INDENT_2).decode() + "\n"
