"""YAML text as plain values and the line of each, with `${VAR}` filled in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from headgate.errors import Fault
from headgate.spec.declared import line_of
from headgate.spec.refusal import suggestion

Plain: TypeAlias = "None | bool | int | float | str | list[Plain] | dict[str, Plain]"

# Aliases can make a small file huge: what is read is bounded, not what is written.
_MAX_VALUES = 100_000
_VARIABLE = re.compile(r"\$(\$)?\{([^{}]*)\}")


@dataclass
class Document:
    """What a file says; faults are gathered so that all can be told at once."""

    file: str
    variables: Mapping[str, str]
    data: Plain = None
    lines: dict[str, int] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)

    def add(self, pointer: str, what: str, fix: str, line: int | None = None) -> None:
        place = line or line_of(self.lines, pointer)
        self.faults.append(Fault(self.file, place, pointer or "(whole file)", what, fix))


def read_document(file: str, text: str, variables: Mapping[str, str]) -> Document:
    """The document in `text`; syntax errors and unset variables are among its faults."""
    document = Document(file, variables)
    try:
        root = YAML(typ="safe", pure=True).compose(text)
    except YAMLError as error:
        _note_syntax(document, error)
        return document
    if root is None:
        document.add("", "the file is empty", "Copy an existing one and change it.", line=1)
        return document
    document.data = _plain(document, root, "", ())
    return document


def _note_syntax(document: Document, error: YAMLError) -> None:
    mark = error.problem_mark if isinstance(error, MarkedYAMLError) else None
    problem = error.problem if isinstance(error, MarkedYAMLError) else None
    column = f" at column {mark.column + 1}" if mark else ""
    document.add(
        "",
        f"this is not YAML{column}: {problem or 'a character that YAML does not allow'}",
        "Check indentation, colons and quotes on this line and the one before.",
        line=mark.line + 1 if mark else 1,
    )


def _plain(document: Document, node: Node, pointer: str, above: tuple[int, ...]) -> Plain:
    document.lines.setdefault(pointer, node.start_mark.line + 1)
    if id(node) in above:
        document.add(pointer, "an alias contains itself", "Write the value out.")
        return None
    if len(document.lines) > _MAX_VALUES:
        return None
    if isinstance(node, MappingNode):
        return _mapping(document, node, pointer, (*above, id(node)))
    if isinstance(node, SequenceNode):
        return [
            _plain(document, item, f"{pointer}[{index}]", (*above, id(node)))
            for index, item in enumerate(node.value)
        ]
    return _scalar(document, node, pointer)


def _mapping(
    document: Document, node: MappingNode, pointer: str, above: tuple[int, ...]
) -> dict[str, Plain]:
    result: dict[str, Plain] = {}
    for key_node, value_node in node.value:
        key = str(key_node.value)
        inner = f"{pointer}.{key}" if pointer else key
        line = key_node.start_mark.line + 1
        if key in result:
            first = document.lines[inner]
            document.add(
                inner,
                f"`{key}` is given twice, first on line {first}",
                "Keep one.",
                line=line,
            )
            continue
        document.lines[inner] = line
        result[key] = _plain(document, value_node, inner, above)
    return result


def _scalar(document: Document, node: ScalarNode, pointer: str) -> Plain:
    kind, text = node.tag.rpartition(":")[2], str(node.value)
    if kind == "null":
        return None
    if kind == "bool":
        return text.lower() == "true"
    if kind in {"int", "float"}:
        return _number(text)
    return _filled(document, text, pointer)


def _number(text: str) -> Plain:
    for convert in (lambda: int(text, 0), lambda: float(text)):
        try:
            return convert()
        except ValueError:
            continue
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
    near = [known for known in document.variables if document.variables[known]]
    hint = suggestion(name, near, "variables")
    fix = f"Set {name} in the profile or the environment."
    document.add(
        pointer,
        f"the variable {name} is not set",
        f"{fix} {hint}" if hint.startswith("Did") else fix,
    )
