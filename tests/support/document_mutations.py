"""Valid documents with one leaf replaced by something odd, or taken out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

# As JSON writes them: some are numbers that no Python value of `json` would be written as.
ODD_JSON = (
    "null",
    "true",
    "0",
    "-1",
    "1",
    "2147483648",
    "9223372036854775808",
    "-170141183460469231731687303715884105729",
    "9007199254740993.0",
    "1" + "0" * 400,
    "9" * 5_000,
    "0.1",
    "-0.0",
    "1e308",
    "1e400",
    "1e-400",
    "1e99999999999999999999",
    '""',
    '" "',
    '"1"',
    '"true"',
    r'"\u0000"',
    r'"\ud800"',
    r'"a\nb\u202e\u2028"',
    '"\U0001f600"',
    json.dumps("x" * 10_000),
    '"../../etc/passwd"',
    '"\'; DROP TABLE filters; --"',
    '"${HOME} {{ x }} $${y} %s {0}"',
    '"2025-01-15T10:00:00+23:59"',
    '"0001-01-01T00:00:00+15:00"',
    '"9999-12-31T23:59:59.999999-15:00"',
    '"2025-02-30T25:61:61Z"',
    "[]",
    "[null]",
    '["a", "a"]',
    "{}",
    '{"a": {"": [1]}}',
    "[" * 60 + "]" * 60,
)
# What only YAML has.
ODD_YAML = (
    "2025-01-01",
    "2025-01-01T10:00:00+23:59",
    ".inf",
    ".nan",
    "0o777",
    "0x_f",
    "1_000",
    "12:30:45",
    "on",
    "~",
    "<<",
    "!!binary aGFsbG8=",
    "!!set {a, b}",
    "!!python/object/apply:os.getcwd []",
    "&a [x]",
    "*nowhere",
    "? a",
    "{? [a]: b}",
    "{1: 2, null: 3}",
    "{a: 1, a: 2}",
    "|\n  x",
    "@x",
    '"\\x00"',
    '"\\ud800"',
    "''",
)
_HOLE = "\ue000"


def list_paths(value: Any, steps: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The paths of the document itself and of every value in it."""
    yield steps
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from list_paths(inner, (*steps, name))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from list_paths(inner, (*steps, number))


def mutate_document(document: Any, odd: tuple[str, ...] = ODD_JSON) -> Iterator[tuple[str, str]]:
    """Each path with each odd value in its place, and once without it: a description and the JSON or YAML text."""
    for steps in list_paths(document):
        where = "/".join(map(str, steps))
        text = json.dumps(replace_at(document, steps, _HOLE))
        hole = json.dumps(_HOLE)
        for value in odd:
            yield f"{where} = {value[:60]}", text.replace(hole, value)
        if steps:
            yield f"{where} left out", json.dumps(remove_at(document, steps))


def replace_at(value: Any, steps: tuple[str | int, ...], new: Any) -> Any:
    """A copy with another value at this path."""
    if not steps:
        return new
    first, rest = steps[0], steps[1:]
    copy = value.copy()
    copy[first] = replace_at(value[first], rest, new) if rest else new
    return copy


def remove_at(value: Any, steps: tuple[str | int, ...]) -> Any:
    """A copy without the value at this path."""
    copy = value.copy()
    if len(steps) == 1:
        del copy[steps[0]]
    else:
        copy[steps[0]] = remove_at(value[steps[0]], steps[1:])
    return copy
