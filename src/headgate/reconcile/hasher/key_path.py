"""A key inside a record, found in Python as the rule set's SQL finds it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from headgate.quality.key_path import Step
from headgate.quality.sound import Number

# As the Spark function writes them: Python has small letters in \u001f.
_ESCAPES = {code: f"\\u{code:04X}" for code in range(32)} | str.maketrans(
    {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
)


def key_of(data: Any, steps: Sequence[Step]) -> str | None:
    """The key's text; of several items that match, the JSON list of their keys."""
    found, many = data, False
    for step in steps:
        found, many = _all_taken(found, step) if many else _taken(found, step)
    return _joined(found) if many else text_of(found)


def text_of(value: Any) -> str | None:
    """A JSON value as a STRING field reads it; numbers come as they were written."""
    if value is None or isinstance(value, str):
        return value
    return _json(value)


def _json(value: Any) -> str:
    """Numbers within it too, as they were written."""
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, dict):
        pairs = cast("Mapping[str, Any]", value).items()
        return "{" + ",".join(f"{_json(name)}:{_json(item)}" for name, item in pairs) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_json, cast("list[Any]", value))) + "]"
    if isinstance(value, str):
        return f'"{value.translate(_ESCAPES)}"'
    return json.dumps(value)


def _taken(found: Any, step: Step) -> tuple[Any, bool]:
    found = _field(found, step.name)
    if step.index is not None:
        return _item(found, step.index), False
    return (_chosen(found, step), True) if step.field else (found, False)


def _all_taken(found: Any, step: Step) -> tuple[Any, bool]:
    values = None if found is None else [_field(item, step.name) for item in found]
    if values is None:
        return None, True
    if step.index is not None:
        return [_item(value, step.index) for value in values], True
    if step.field is None:
        return values, True
    if any(not isinstance(value, list) for value in values):
        return None, True
    return _chosen([item for value in values for item in value], step), True


def _field(value: Any, name: str) -> Any:
    return cast("Mapping[str, Any]", value).get(name) if isinstance(value, dict) else None


def _item(value: Any, index: int) -> Any:
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return items[index] if index < len(items) else None


def _chosen(value: Any, step: Step) -> list[Any] | None:
    if not isinstance(value, list):
        return None
    items = cast("list[Any]", value)
    if not all(item is None or isinstance(item, dict) for item in items):
        return None  # the SQL reads such a list as none
    return [item for item in items if text_of(_field(item, step.field or "")) == step.text]


def _joined(found: list[Any] | None) -> str | None:
    texts = [text_of(value) for value in found or ()]
    if len(texts) > 1:
        return _json([text and str(text) for text in texts])
    return texts[0] if texts else None
