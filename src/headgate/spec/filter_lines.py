"""JSON text as plain values, with the line on which each of them stands."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, NoReturn

from headgate.spec.json_pointer import json_pointer

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+|\n', re.DOTALL)


class NotJsonError(ValueError):
    """Where and why the text is not JSON."""

    def __init__(self, what: str, line: int) -> None:
        super().__init__(what)
        self.what = what
        self.line = line


def read_json(text: str) -> Any:
    """The value that the text says."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        what = f"this is not JSON at column {error.colno}: {error.msg[:1].lower()}{error.msg[1:]}"
        raise NotJsonError(what, error.lineno) from None
    except RecursionError:
        raise NotJsonError("it is nested too deeply", 1) from None
    except ValueError as error:
        raise NotJsonError(f"this is not JSON: {error}", 1) from None


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number")


@dataclass
class Lines:
    """The line of each value by its JSON pointer; `twice` are keys given again, with their line."""

    found: dict[str, int] = field(default_factory=dict[str, int])
    twice: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])


def lines_of(text: str) -> Lines:
    """Where everything stands in a text that is JSON."""
    walk = _Walk()
    for token in _TOKEN.findall(text):
        walk.take(token)
        walk.line += token.count("\n")
    return walk.lines


class _Walk:
    """The way down to where it stands; None is an object's next key, not yet read."""

    def __init__(self) -> None:
        self.lines = Lines()
        self.line = 1
        self._way: list[str | int | None] = []

    def take(self, token: str) -> None:
        if token in {"\n", ":"}:
            return
        if token in "}]":
            self._way.pop()
        elif token == ",":
            last = self._way[-1]
            self._way[-1] = last + 1 if isinstance(last, int) else None
        elif self._way and self._way[-1] is None:
            self._way[-1] = json.loads(token)
            self._mark(is_key=True)
        else:
            self._mark(is_key=False)
            if token in "{[":
                self._way.append(None if token == "{" else 0)

    def _mark(self, *, is_key: bool) -> None:
        pointer = json_pointer(self._way)
        if is_key and pointer in self.lines.found:
            self.lines.twice.append((pointer, self.line))
        self.lines.found.setdefault(pointer, self.line)
