"""Holds a document against a declared model and says in our words what does not fit."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from headgate.spec.document import Document
from headgate.spec.refusal import Refusal, suggestion

Model = TypeVar("Model")
Schema = dict[str, Any]  # pyright: ignore[reportExplicitAny]  JSON Schema has no closed shape

_KINDS = {
    "string_type": ("text", "Put the value in quotes."),
    "bool_type": ("true or false", "Write true or false, without quotes."),
    "tuple_type": ("a list", "Write one `- value` line for each."),
    "dataclass_type": ("a mapping", "Write `key: value` lines."),
    "int_type": ("a whole number", "Write the number without quotes."),
}
_NAMES: dict[type, str] = {
    type(None): "nothing",
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "text",
    list: "a list",
    dict: "a mapping",
}


def validate(model: type[Model], document: Document) -> Model | None:
    """The model's value; None when the document has faults that were added to it."""
    try:
        return TypeAdapter(model).validate_python(document.data)
    except ValidationError as error:
        schema = _schema(model)
        for detail in error.errors(include_url=False):
            _note(document, schema, detail)
        return None


@cache
def _schema(model: type[object]) -> Schema:
    return TypeAdapter(model).json_schema()


def pointer_to(steps: Sequence[str | int]) -> str:
    """`("columns", 3, "name")` as `columns[3].name`."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    return text.removeprefix(".")


def _note(document: Document, schema: Schema, detail: ErrorDetails) -> None:
    where = detail["loc"]
    what, fix = _words(detail, schema)
    document.add(pointer_to(where), what, fix)


def _words(detail: ErrorDetails, schema: Schema) -> tuple[str, str]:
    kind, key = detail["type"], str(detail["loc"][-1]) if detail["loc"] else ""
    refusal = detail.get("ctx", {}).get("error")
    if isinstance(refusal, Refusal):
        return refusal.what, refusal.fix
    if kind == "missing":
        return f"the key `{key}` is missing", _missing(schema, detail["loc"])
    if kind in {"extra_forbidden", "unexpected_keyword_argument"}:
        known = _properties(schema, detail["loc"][:-1])
        return f"the key `{key}` is unknown", suggestion(key, known, "keys")
    if kind in _KINDS:
        wanted, fix = _KINDS[kind]
        return f"must be {wanted}, not {_name(detail['input'])}", fix
    if kind == "literal_error":
        return (
            "is none of the values it can have",
            f"Write {detail.get('ctx', {}).get('expected')}.",
        )
    if kind in {"string_too_short", "too_short"}:
        return "is empty", "Write at least one."
    return detail["msg"][0].lower() + detail["msg"][1:], "Correct the value."


def _name(value: object) -> str:
    return next((name for kind, name in _NAMES.items() if type(value) is kind), "this")


def _missing(schema: Schema, where: Sequence[str | int]) -> str:
    key = str(where[-1])
    about = _properties(schema, where[:-1]).get(key, {}).get("description", "")
    return f"Add it. {about}".rstrip()


def _properties(schema: Schema, where: Sequence[str | int]) -> Schema:
    node = schema
    for step in where:
        node = node.get("items", {}) if isinstance(step, int) else node["properties"][step]
        node = schema["$defs"][node["$ref"].rpartition("/")[2]] if "$ref" in node else node
    return node.get("properties", {})
