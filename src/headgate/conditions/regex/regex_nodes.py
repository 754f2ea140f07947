"""A pattern as a tree. Places count the pattern's characters from 1; equality leaves them out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from headgate.conditions.regex.chars import CharSet
from headgate.declarations.refusal import Refusal


@dataclass(frozen=True)
class Span:
    """The characters from `start` up to, not with, `end`."""

    start: int
    end: int


NOWHERE = Span(0, 0)


@dataclass(frozen=True)
class Chars:
    """One character of the set."""

    set: CharSet
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True)
class Begin:
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True)
class End:
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True)
class Sequence:
    """One after the other; without items it is the empty text."""

    items: tuple[Node, ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True)
class Choice:
    items: tuple[Node, ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True)
class Repeat:
    """The item so often; `most` None is without limit. `possessive` is as it was written."""

    item: Node
    least: int
    most: int | None
    span: Span = field(default=NOWHERE, compare=False)
    possessive: bool = field(default=False, compare=False)


Node: TypeAlias = Chars | Begin | End | Sequence | Choice | Repeat


def is_nullable(node: Node, anchors: tuple[type, ...] = (Begin, End)) -> bool:
    """Whether the pattern can match without taking a character, where the `anchors` hold."""
    match node:
        case Chars():
            return False
        case Begin() | End():
            return isinstance(node, anchors)
        case Sequence():
            return all(is_nullable(item, anchors) for item in node.items)
        case Choice():
            return any(is_nullable(item, anchors) for item in node.items)
        case Repeat():
            return node.least == 0 or is_nullable(node.item, anchors)


class PatternRefusal(Refusal):
    """A pattern outside the safe subset; `position` is the place in the pattern."""

    def __init__(self, position: int, what: str, fix: str, why: str = "") -> None:
        place = f" at character {position}" if position else ""
        super().__init__(f"in the pattern{place}: {what}", fix, why)
        self.position = position
