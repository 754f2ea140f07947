"""Read a declared file and validate it against a model; all faults at once, each with its line.

`read_document` gives plain values, the line of each and `${VAR}` filled in; `validate` returns the
model's value, or None after it has added a fault to the document for everything that does not
fit, in our words instead of pydantic's.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypeAlias, TypeVar

from pydantic import StrictStr, StringConstraints, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from headgate.declarations import yaml
from headgate.declarations.errors import HALF, Refusal, line_of, suggestion
from headgate.errors import DeclarationError, Fault

Plain: TypeAlias = "bool | int | float | str | list[Plain] | dict[str, Plain] | None"
Steps: TypeAlias = tuple[str | int, ...]

WHOLE_FILE = "(whole file)"
_VARIABLE = re.compile(r"\$(\$)?\{([^{}]*)\}")


@dataclass
class Document:
    """What a file says; faults are gathered so that all can be told at once.

    `unknown_keys` are the steps to each key that the model does not know: a fault, but one that the
    rest can be read without.
    """

    file: str
    variables: Mapping[str, str]
    data: Plain = None
    lines: dict[str, int] = field(default_factory=dict[str, int])
    faults: list[Fault] = field(default_factory=list[Fault])
    unknown_keys: list[Steps] = field(default_factory=list[Steps])

    def add(self, pointer: str, what: str, fix: str, line: int | None = None) -> None:
        place = line or line_of(self.lines, pointer)
        self.faults.append(Fault(self.file, place, pointer or WHOLE_FILE, what, fix))


def text_of(path: Path) -> str:
    """The text of a declared file; one that cannot be read is refused in words."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        what, fix = "the file does not exist", "Check its name."
    except UnicodeDecodeError as error:
        what, fix = f"byte {error.start} is not UTF-8", "Save the file as UTF-8."
    except OSError as error:
        what, fix = f"it cannot be read: {error.strerror}", "Check the path and its permissions."
    raise DeclarationError([Fault(str(path), None, WHOLE_FILE, what, fix)])


def read_document(file: str, text: str, variables: Mapping[str, str]) -> Document:
    """The document in `text`; syntax errors and unset variables are among its faults."""
    document = Document(file, variables)
    try:
        root = yaml.compose(text)
    except yaml.NotYamlError as error:
        fix = "Check indentation, colons and quotes on this line and the one before."
        document.add("", error.what, fix, line=error.line)
        return document
    if root is None:
        document.add("", "the file is empty", "Copy an existing one and change it.", line=1)
    else:
        document.data = _plain(document, root, "")
    return document


def _plain(document: Document, node: yaml.YamlNode, pointer: str) -> Plain:
    document.lines.setdefault(pointer, node.line)
    match node:
        case yaml.Mapping():
            return _mapping(document, node, pointer)
        case yaml.Sequence():
            items = enumerate(node.items)
            return [_plain(document, item, f"{pointer}[{index}]") for index, item in items]
        case yaml.Scalar():
            return _scalar(document, node, pointer)


def _mapping(document: Document, node: yaml.Mapping, pointer: str) -> dict[str, Plain]:
    result: dict[str, Plain] = {}
    for key, value in node.pairs:
        name = _whole(document, key.text, f"{pointer}.{key.text}".lstrip("."), key.line)
        inner = f"{pointer}.{name}" if pointer else name
        if name in result:
            what = f"`{name}` is given twice, first on line {document.lines[inner]}"
            document.add(inner, what, "Keep one.", line=key.line)
            continue
        document.lines[inner] = key.line
        result[name] = _plain(document, value, inner)
    return result


def _scalar(document: Document, node: yaml.Scalar, pointer: str) -> Plain:
    if node.kind == "null":
        return None
    if node.kind == "bool":
        return node.text.lower() == "true"
    if node.kind in {"int", "float"}:
        return _number(node.text)
    return _filled(document, _whole(document, node.text, pointer, node.line), pointer)


def _whole(document: Document, text: str, pointer: str, line: int) -> str:
    """The text without halves of characters, which no file and no validator can hold."""
    if HALF.search(text) is None:
        return text
    what = "the text has half of a character in it"
    document.add(HALF.sub("?", pointer), what, "Write the character itself.", line=line)
    return HALF.sub("?", text)


def _number(text: str) -> Plain:
    """A number as Python reads it; YAML's other spellings (0o7, .inf) stay text and are refused.

    So does a number that is beyond a DOUBLE, as 1e400.
    """
    for convert in (int, float):
        try:
            value = convert(text)
        except ValueError:
            continue
        return value if isinstance(value, int) or math.isfinite(value) else text
    return text


def _filled(document: Document, text: str, pointer: str) -> str:
    """`${NAME}` gives the variable's value; `$${NAME}` stands for `${NAME}` itself."""

    def value(match: re.Match[str]) -> str:
        if match.group(1):
            return match.group(0)[1:]
        name = match.group(2)
        if document.variables.get(name):
            return document.variables[name]
        _note_unset(document, name, pointer)
        return match.group(0)

    return _VARIABLE.sub(value, text)


def _note_unset(document: Document, name: str, pointer: str) -> None:
    set_ones = [known for known, value in document.variables.items() if value]
    hint = suggestion(name, set_ones, "variables")
    fix = f"Set {name} in the profile or the environment."
    near = f" {hint}" if hint.startswith("Did") else ""
    document.add(pointer, f"the variable {name} is not set", fix + near)


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
