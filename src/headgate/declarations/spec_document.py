"""A declared file as plain values and the line of each, with `${VAR}` filled in."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from headgate.declarations import yaml
from headgate.declarations.declared import line_of
from headgate.declarations.refusal import suggestion
from headgate.errors import DeclarationError, Fault

Plain: TypeAlias = "bool | int | float | str | list[Plain] | dict[str, Plain] | None"
Steps: TypeAlias = tuple[str | int, ...]

WHOLE_FILE = "(whole file)"
_HALF = re.compile(r"[\ud800-\udfff]")
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
    if _HALF.search(text) is None:
        return text
    what = "the text has half of a character in it"
    document.add(_HALF.sub("?", pointer), what, "Write the character itself.", line=line)
    return _HALF.sub("?", text)


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
