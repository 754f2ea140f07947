"""JSON text of a filter: limits on size, depth and number of values; lines of JSON pointers; repeated keys.

Whole numbers that a DOUBLE cannot hold are marked (`RoundedNumber`), since numbers are compared as DOUBLE.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NoReturn, cast

from headgate.declarations.errors import MOST_FAULTS

# Judged before anything else is done with a document: what follows costs time for each value.
MOST_BYTES = 1024 * 1024
MOST_DEPTH = 32
MOST_ITEMS = 100_000
# Numbers are compared as DOUBLE: from here on not every whole number is one.
MOST_WHOLE = 1 << 53

_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+|\n', re.DOTALL)


class NotJsonError(ValueError):
    """Where and why the text is not the JSON of a filter."""

    def __init__(self, what: str, line: int, fix: str) -> None:
        super().__init__(what)
        self.what = what
        self.line = line
        self.fix = fix


class RoundedNumber(float):
    """A whole number whose text says another value than the nearest DOUBLE has."""


@dataclass(frozen=True)
class JsonText:
    """The value of a text; `repeats_key` says that an object in it has a key twice."""

    data: Any
    repeats_key: bool


def read_json(text: str) -> JsonText:
    """The value of the text; NotJsonError when it is too large, too deep or no JSON."""
    if len(text) > MOST_BYTES or len(text.encode(errors="replace")) > MOST_BYTES:
        what = f"the document has more than {MOST_BYTES:,} bytes"
        raise NotJsonError(what, 1, "Split the filter into several.")
    repeats = _Repeats()
    try:
        data = json.loads(
            text,
            parse_constant=_refuse,
            parse_float=_number,
            object_pairs_hook=repeats.make_object,
        )
    except json.JSONDecodeError as error:
        what = f"this is not JSON at column {error.colno}: {error.msg[:1].lower()}{error.msg[1:]}"
        raise NotJsonError(what, error.lineno, _SYNTAX) from None
    except RecursionError:
        raise NotJsonError(_TOO_DEEP, 1, _FLATTEN) from None
    except ValueError as error:
        raise NotJsonError(f"this is not JSON: {error}", 1, _SYNTAX) from None
    _refuse_shape(data)
    return JsonText(data, repeats.seen)


_SYNTAX = "Check commas, quotes and brackets."
_TOO_DEEP = f"it is nested deeper than {MOST_DEPTH} levels"
_FLATTEN = "Write fewer groups inside groups."


class _Repeats:
    """Builds objects, and notes whether one of them had a key twice."""

    def __init__(self) -> None:
        self.seen = False

    def make_object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        self.seen |= len(made) < len(pairs)
        return made


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number")


def _number(text: str) -> float:
    """The number, marked where a whole number does not survive as a DOUBLE."""
    value = float(text)
    if MOST_WHOLE <= abs(value) < math.inf and Decimal(text) != value:
        return RoundedNumber(value)
    return value


def _refuse_shape(data: object) -> None:
    """Count values level by level; stops at the first level that is too deep or too wide."""
    level, items = [data], 1
    for _ in range(MOST_DEPTH + 1):
        nested = [inside for value in level if (inside := _inside(value)) is not None]
        items += sum(map(len, nested))
        if items > MOST_ITEMS:
            what = f"it has more than {MOST_ITEMS:,} values"
            raise NotJsonError(what, 1, "Split the filter into several.")
        if not nested:
            return
        level = [value for values in nested for value in values]
    raise NotJsonError(_TOO_DEEP, 1, _FLATTEN)


def _inside(value: object) -> Sequence[object] | None:
    """What an object or a list has in it; None for anything else."""
    if isinstance(value, dict):
        return list(cast("dict[str, object]", value).values())
    return cast("list[object]", value) if isinstance(value, list) else None


@dataclass
class Lines:
    """Lines by JSON pointer, of pointers that were asked for and of what is around them.

    `twice` are keys given again, with their line.
    """

    found: dict[str, int] = field(default_factory=dict[str, int])
    twice: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])


def lines_of(text: str, pointers: Iterable[str]) -> Lines:
    """The lines of these pointers in a text that is JSON, and keys that are given twice."""
    walk = _Walk(_wanted(pointers))
    for match in _TOKEN.finditer(text):
        token = match.group()
        walk.take(token)
        if "\n" in token:
            walk.line += token.count("\n")
    return walk.lines


def _wanted(pointers: Iterable[str]) -> _Wanted:
    root = _Wanted("")
    for pointer in pointers:
        node = root
        for step in pointer.split("/")[1:]:
            node = node.inside.setdefault(step, _Wanted(f"{node.pointer}/{step}"))
    return root


@dataclass
class _Wanted:
    """A pointer whose line is needed, and those inside it by their next step."""

    pointer: str
    inside: dict[str, _Wanted] = field(default_factory=dict[str, "_Wanted"])


@dataclass
class _Level:
    """An object or list that is open: where the walk stands in it, and which keys it had."""

    is_object: bool
    wanted: _Wanted | None
    key: str | None = None
    index: int = 0
    keys: set[str] = field(default_factory=set[str])

    @property
    def step(self) -> str:
        return _escaped(self.key or "") if self.is_object else str(self.index)

    def next(self) -> _Wanted | None:
        return self.wanted.inside.get(self.step) if self.wanted and self.wanted.inside else None


class _Walk:
    """One pass over the tokens. Pointers are made only where a line is needed."""

    def __init__(self, wanted: _Wanted) -> None:
        self.lines = Lines()
        self.line = 1
        self._root = wanted
        self._open: list[_Level] = []

    def take(self, token: str) -> None:
        if token in {"\n", ":"}:
            return
        level = self._open[-1] if self._open else None
        if token in "}]":
            self._open.pop()
        elif token == ",":
            assert level is not None
            level.key, level.index = None, level.index + 1
        elif level is not None and level.is_object and level.key is None:
            self._take_key(level, json.loads(token))
        else:
            wanted = level.next() if level else self._root
            self._mark(wanted)
            if token in "{[":
                self._open.append(_Level(token == "{", wanted))

    def _take_key(self, level: _Level, key: str) -> None:
        level.key = key
        if key in level.keys and len(self.lines.twice) < MOST_FAULTS:
            pointer = "".join(f"/{one.step}" for one in self._open)
            self.lines.twice.append((pointer, self.line))
        level.keys.add(key)
        self._mark(level.next())

    def _mark(self, wanted: _Wanted | None) -> None:
        if wanted is not None:
            self.lines.found.setdefault(wanted.pointer, self.line)


def _escaped(step: str) -> str:
    return step.replace("~", "~0").replace("/", "~1")
