"""Holds a document against a declared model and says in our words what does not fit."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any, TypeVar

from pydantic import StrictStr, StringConstraints, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from headgate.declarations.refusal import Refusal, suggestion
from headgate.declarations.spec_document import Document

Model = TypeVar("Model")
# A text of a declaration, which may not be empty.
Text = Annotated[StrictStr, StringConstraints(min_length=1)]
Schema = dict[str, Any]  # JSON Schema has no closed shape

_UNKNOWN = {"extra_forbidden", "unexpected_keyword_argument"}
_KINDS = {
    "string_type": ("text", "Put the value in quotes."),
    "bool_type": ("true or false", "Write true or false, without quotes."),
    "tuple_type": ("a list", "Write one `- value` line for each."),
    "dataclass_type": ("a mapping", "Write `key: value` lines."),
    "dict_type": ("a mapping", "Write `key: value` lines."),
    "float_type": ("a number", "Write the number without quotes."),
    "int_type": ("a whole number", "Write the number without quotes."),
}
_BOUNDS = {"greater_than_equal": "at least", "less_than_equal": "at most"}
_QUOTED = re.compile(r"'([^']*)'")
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
            if not _is_empty_in_name(detail):
                _note(document, schema, detail)
        return None


def _is_empty_in_name(detail: ErrorDetails) -> bool:
    """Whether a list is called too short only because its items have faults."""
    return detail["type"] == "too_short" and detail["input"] not in ([], {})


@cache
def _schema(model: type[object]) -> Schema:
    return TypeAdapter(model).json_schema()


def pointer_to(steps: Sequence[str | int]) -> str:
    """`("columns", 3, "name")` as `columns[3].name`."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    return text.removeprefix(".")


def _note(document: Document, schema: Schema, detail: ErrorDetails) -> None:
    where = _place(document, detail)
    what, fix = _words(detail, schema, where)
    refusal = detail.get("ctx", {}).get("error")
    if isinstance(refusal, Refusal) and refusal.key:
        where = (*where, refusal.key)
    document.add(pointer_to(where), what, fix)
    if detail["type"] in _UNKNOWN:
        document.unknown_keys.append(where)


def _place(document: Document, detail: ErrorDetails) -> tuple[str | int, ...]:
    """The steps of the fault that stand in the document; pydantic adds some of its own."""
    steps, node = list[str | int](), document.data
    for step in detail["loc"]:
        if isinstance(node, dict) and step in node:
            node = node[str(step)]
        elif isinstance(node, list) and isinstance(step, int) and step < len(node):
            node = node[step]
        else:
            break
        steps.append(step)
    return (*steps, detail["loc"][-1]) if detail["type"] == "missing" else tuple(steps)


def _words(detail: ErrorDetails, schema: Schema, where: Sequence[str | int]) -> tuple[str, str]:
    kind, key = detail["type"], str(where[-1]) if where else ""
    refusal = detail.get("ctx", {}).get("error")
    if isinstance(refusal, Refusal):
        return refusal.what, refusal.fix
    if kind == "missing":
        return f"the key `{key}` is missing", _missing(schema, where)
    if kind in _UNKNOWN:
        known = _properties(schema, where[:-1])
        return f"the key `{key}` is unknown", suggestion(key, known, "keys")
    if kind in _KINDS:
        wanted, fix = _KINDS[kind]
        return f"must be {wanted}, not {_name(detail['input'])}", fix
    if kind == "literal_error":
        return _not_listed(detail)
    if kind in _BOUNDS:
        words, bound = _BOUNDS[kind], next(iter(detail.get("ctx", {}).values()), "")
        return f"must be {words} {bound}", f"Write for example {bound}."
    if kind in {"string_too_short", "too_short"}:
        return "is empty", "Write at least one."
    return detail["msg"][0].lower() + detail["msg"][1:], "Correct the value."


def _not_listed(detail: ErrorDetails) -> tuple[str, str]:
    value = str(detail["input"])
    options = _QUOTED.findall(str(detail.get("ctx", {}).get("expected")))
    if detail["loc"][-1] == "[key]":
        return f"the key `{value}` is unknown", suggestion(value, options, "keys")
    what = f"`{value}` is none of the values it can have"
    return what, suggestion(value, options, "values")


def _name(value: object) -> str:
    return next((name for kind, name in _NAMES.items() if type(value) is kind), "this")


def _missing(schema: Schema, where: Sequence[str | int]) -> str:
    key = str(where[-1])
    about = _properties(schema, where[:-1]).get(key, {}).get("description", "")
    return f"Add it. {about}".rstrip()


def _properties(schema: Schema, where: Sequence[str | int]) -> Schema:
    node = _resolved(schema, schema)
    for step in where:
        inner = node.get("items") if isinstance(step, int) else _member(node, step)
        node = _resolved(schema, inner or {})
    return node.get("properties", {})


def _member(node: Schema, key: str) -> Schema | None:
    return node.get("properties", {}).get(key) or node.get("additionalProperties")


def _resolved(schema: Schema, node: Schema) -> Schema:
    """What a reference, or the first alternative that has any shape, stands for."""
    for option in node.get("anyOf", ()):
        if option.get("type") != "null":
            return _resolved(schema, option)
    return schema["$defs"][node["$ref"].rpartition("/")[2]] if "$ref" in node else node
