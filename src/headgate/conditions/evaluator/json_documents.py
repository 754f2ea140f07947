"""Read JSON documents in Python exactly as Spark reads them into a VARIANT.

The first value of the text counts, whatever follows it. Nothing is JSON that has a field twice, is
nested deeper than 1,000 levels, or has a number of more than 1,000 digits or a name of more than
50,000 characters. An escape that is half of a surrogate pair is a question mark.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple, NoReturn, TypeAlias

Json: TypeAlias = "bool | str | Numeral | list[Json] | dict[str, Json] | None"

_BLANKS = " \t\r\n"
_DEPTH, _DIGITS, _NAME = 1_000, 1_000, 50_000
_PLAIN_DIGITS = 38
_HALF = re.compile("[\\ud800-\\udfff]")
_STEP = re.compile(r"\.([A-Za-z0-9_]+)|\[(\d+)\]")
_NOISE = re.compile(r'"(?:[^"\\]|\\.)*"|[^\[\]{}"]+', re.DOTALL)


class Numeral(NamedTuple):
    """A number as it is written."""

    written: str

    @property
    def plain(self) -> str | None:
        """Its digits without zeros at the end; None where Spark holds it as a DOUBLE."""
        sign, whole, fraction = _parts(self.written)
        if fraction is None or len(fraction) > _PLAIN_DIGITS:
            return None
        if len((whole + fraction).lstrip("0")) > _PLAIN_DIGITS:
            return None
        fraction = fraction.rstrip("0")
        text = f"{whole}.{fraction}" if fraction else whole
        return f"{sign}{text}" if text != "0" else "0"

    @property
    def text(self) -> str:
        """Some text that says the number."""
        return self.plain or repr(float(self.written))


def _parts(written: str) -> tuple[str, str, str | None]:
    """Sign, digits before and behind the point; None behind it where there is an exponent."""
    sign = "-" if written.startswith("-") else ""
    whole, _, fraction = written.removeprefix("-").partition(".")
    exponent = "e" in written or "E" in written
    return sign, whole, None if exponent else fraction


class _NotJsonError(ValueError):
    pass


def _number(written: str) -> Numeral:
    if len(written) > _DIGITS and len(re.sub("[-+.eE]", "", written)) > _DIGITS:
        raise _NotJsonError
    return Numeral(written)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs) or any(len(name) > _NAME for name in made):
        raise _NotJsonError
    return made


def _refuse(_word: str) -> NoReturn:
    raise _NotJsonError


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_float=_number, parse_int=_number, parse_constant=_refuse
)


# Conditions ask for several values of one document.
@lru_cache(8)
def read_document(text: str) -> Json:
    """The JSON value that the text begins with; None where it begins with none, or with null."""
    begin = len(text) - len(text.lstrip(_BLANKS))
    if text.count("[") + text.count("{") > _DEPTH // 2:
        return _read_deep(text, begin)
    return _read(text, begin)


def _read(text: str, begin: int) -> Json:
    try:
        return _DECODER.raw_decode(text, begin)[0]
    except (ValueError, RecursionError):
        return None


def _read_deep(text: str, begin: int) -> Json:
    """Of a text that may be nested deeper than Python goes by itself."""
    if _depth(text) > _DEPTH:
        return None
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(limit + 4 * _DEPTH)
    try:
        return _read(text, begin)
    finally:
        sys.setrecursionlimit(limit)


def _depth(text: str) -> int:
    """How deep the first value is nested, as far as brackets outside of texts tell."""
    depth = deepest = 0
    for bracket in _NOISE.sub("", text):
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
        if depth == 0:
            break
    return deepest


@lru_cache(1_000)
def steps_of(path: str) -> tuple[str | int, ...]:
    """`$.items[0].price` as its steps: names of objects, places in lists."""
    return tuple(name or int(place) for name, place in _STEP.findall(path))


def found_at(root: Json, steps: Sequence[str | int]) -> Json:
    """What stands at the end of the steps; None where nothing does."""
    here = root
    for step in steps:
        if isinstance(step, str):
            here = here.get(step) if isinstance(here, dict) else None
        else:
            here = here[step] if isinstance(here, list) and step < len(here) else None
    return here


def text_of(value: Json) -> str | None:
    """The text that a value is compared by; none where it would depend on how Java prints it."""
    if isinstance(value, str):
        return whole(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.plain if isinstance(value, Numeral) else None


def value_of(value: Json) -> str | None:
    """The value in some text: what it is as a number, a boolean or a time, and whether it is there."""
    if isinstance(value, Numeral):
        return value.text
    if isinstance(value, dict | list):
        return "{}"
    return text_of(value)


def whole(text: str) -> str:
    """The text with a question mark for each half of a surrogate pair."""
    return text if text.isascii() else _HALF.sub("?", text)


def json_text(text: str, path: str) -> str | None:
    """The language's function `json_text`."""
    return text_of(found_at(read_document(text), steps_of(path)))


def json_value(text: str, path: str) -> str | None:
    """The language's function `json_value`."""
    return value_of(found_at(read_document(text), steps_of(path)))
