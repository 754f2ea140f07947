"""The JSON Schema that rows of a drafted dataset must meet when VALIDATE_SCHEMA is on."""

from __future__ import annotations

import orjson

from headgate.core.profiler.draw_up import Draft
from headgate.core.profiler.profile_model import ColumnProfile

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_TYPES = {"whole": "integer", "real": "number", "decimal": "number", "boolean": "boolean"}
_DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"


def row_schema(draft: Draft) -> str:
    """Every field is there and has its type; the event time and the key are never null."""
    strict = {draft.event_time, *draft.key.columns}
    content = {
        "$schema": _DRAFT,
        "title": draft.name,
        "description": "One row as the generator sends it. Used with VALIDATE_SCHEMA=true: "
        "a row that does not fit goes to the dead-letter topic.",
        "type": "object",
        "required": [column.name for column in draft.columns],
        "properties": {
            c.name: _property(c, optional=bool(c.nulls) or c.name not in strict)
            for c in draft.columns
        },
    }
    return orjson.dumps(content, option=orjson.OPT_INDENT_2).decode() + "\n"


def _property(column: ColumnProfile, *, optional: bool) -> dict[str, object]:
    if column.kind == "nested":
        return {}
    name = _TYPES.get(column.kind, "string")
    pattern = {"pattern": f"^{_DAY}"} if column.kind in ("time", "date") else {}
    return {"type": [name, "null"] if optional else name, **pattern}
