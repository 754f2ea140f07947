"""Parse YAML text into typed nodes with line numbers; the only module that uses the YAML library."""

# ruamel.yaml leaves its nodes and errors untyped; everything that leaves this module is typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, SequenceNode

# How many documents of declared files stay parsed: a command that checks, compiles and deploys reads
# each file several times, and to parse it is most of that.
_KEPT = 32
# Aliases can make a small file huge: what is read is bounded, not what is written.
_MAX_NODES = 100_000


@dataclass(frozen=True)
class Scalar:
    """`kind` is YAML's own: str, int, float, bool, null and so on."""

    line: int
    kind: str
    text: str


@dataclass(frozen=True)
class Sequence:
    line: int
    items: tuple[YamlNode, ...]


@dataclass(frozen=True)
class Mapping:
    line: int
    pairs: tuple[tuple[Scalar, YamlNode], ...]


YamlNode: TypeAlias = Scalar | Sequence | Mapping


class NotYamlError(ValueError):
    """Where and why the text is not YAML."""

    def __init__(self, what: str, line: int) -> None:
        super().__init__(what)
        self.what = what
        self.line = line


@lru_cache(_KEPT)
def compose(text: str) -> YamlNode | None:
    """The document's root; None when there is nothing in the text."""
    try:
        root = YAML(typ="safe", pure=True).compose(text)
    except MarkedYAMLError as error:
        raise _syntax(error) from None
    except YAMLError:
        raise NotYamlError("it has a character that YAML does not allow", 1) from None
    except RecursionError:
        raise NotYamlError("it is nested too deeply", 1) from None
    return None if root is None else _Reader().node(root, ())


def _syntax(error: MarkedYAMLError) -> NotYamlError:
    mark = error.problem_mark or error.context_mark
    where = f" at column {mark.column + 1}" if mark else ""
    return NotYamlError(
        f"this is not YAML{where}: {error.problem or error.context or 'syntax error'}",
        mark.line + 1 if mark else 1,
    )


class _Reader:
    def __init__(self) -> None:
        self.count = 0

    def node(self, node: Node, above: tuple[int, ...]) -> YamlNode:
        line = int(node.start_mark.line) + 1
        self.count += 1
        if self.count > _MAX_NODES:
            raise NotYamlError(f"it has more than {_MAX_NODES} values", line)
        if id(node) in above:
            raise NotYamlError("an alias contains itself", line)
        inside = (*above, id(node))
        if isinstance(node, MappingNode):
            pairs = [(self.key(key), self.node(value, inside)) for key, value in node.value]
            return Mapping(line, tuple(pairs))
        if isinstance(node, SequenceNode):
            return Sequence(line, tuple(self.node(item, inside) for item in node.value))
        return Scalar(line, str(node.tag).rpartition(":")[2], str(node.value))

    def key(self, node: Node) -> Scalar:
        found = self.node(node, ())
        if not isinstance(found, Scalar):
            raise NotYamlError("a key is a list or a mapping", found.line)
        return found
