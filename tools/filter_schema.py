"""The JSON Schema of a filter's document, for editors and other programs: `schemas/filter.schema.json`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from headgate.filters.spec import Filter
from headgate.filters.validation import NEEDS

FILTER_SCHEMA_FILE = Path("schemas/filter.schema.json")
_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_VALUES = ("value", "values", "min", "max")


def filter_schema() -> str:
    """The schema as JSON text, the same bytes every time."""
    body: dict[str, Any] = {"$schema": _DRAFT} | Filter.model_json_schema(by_alias=True)
    body["required"] = [name for name in body["required"] if name != "id"]
    condition = body["$defs"]["Condition"]
    condition["allOf"] = [_needs(operator, keys) for operator, keys in NEEDS.items()]
    return orjson.dumps(body, option=orjson.OPT_INDENT_2).decode() + "\n"


def _needs(operator: str, keys: tuple[str, ...]) -> dict[str, Any]:
    """What a condition with that operator must have, and what it must not."""
    then: dict[str, Any] = {"required": list(keys)} if keys else {}
    unwanted = [{"required": [key]} for key in _VALUES if key not in keys]
    then["not"] = {"anyOf": unwanted}
    return {
        "if": {"properties": {"operator": {"const": operator}}, "required": ["operator"]},
        "then": then,
    }
