"""JSON that keeps every number as it was written, and refuses what PostgreSQL could not keep."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import cast

Json = object
Steps = tuple[str | int, ...]
MOST_DEPTH = 40
MOST_DIGITS = 300
UNKEPT = "has a character that cannot be kept (NUL, or half of a surrogate pair)"


class NotJsonError(ValueError):
    """The text is no JSON; the words say where it ends to be."""


def parsed(text: bytes) -> Json:
    """The value; decimals stay exact."""
    try:
        return json.loads(text, parse_float=Decimal, parse_constant=_refuse_constant)
    except RecursionError:
        raise NotJsonError("it is nested too deep") from None
    except ValueError as error:  # not UTF-8, not JSON, a number of too many digits
        raise NotJsonError(str(error).partition("\n")[0]) from None


def _refuse_constant(name: str) -> Json:
    raise ValueError(f"{name} is no JSON")


def unkept(value: Json) -> Iterator[tuple[Steps, str]]:
    """Where something stands that PostgreSQL's jsonb refuses, and what it is."""
    waiting: list[tuple[Steps, Json]] = [((), value)]
    while waiting:
        steps, found = waiting.pop()
        if why := _why_unkept(found, len(steps)):
            yield steps, why
        elif isinstance(found, dict):
            fields = cast("dict[str, Json]", found)
            yield from (((*steps, _shown(name)), UNKEPT) for name in fields if not keeps(name))
            waiting += [((*steps, name), each) for name, each in fields.items() if keeps(name)]
        elif isinstance(found, list):
            items = cast("list[Json]", found)
            waiting += [((*steps, number), each) for number, each in enumerate(items)]


def _why_unkept(value: Json, depth: int) -> str:
    if isinstance(value, str) and not keeps(value):
        return UNKEPT
    if isinstance(value, (int, Decimal)) and _is_huge(Decimal(value)):
        return f"has more than {MOST_DIGITS} digits"
    if isinstance(value, (dict, list)) and depth >= MOST_DEPTH:
        return f"is nested deeper than {MOST_DEPTH} levels"
    return ""


def _is_huge(number: Decimal) -> bool:
    exponent = number.as_tuple().exponent
    digits = len(number.as_tuple().digits)
    return max(digits, abs(number.adjusted()), abs(int(exponent))) > MOST_DIGITS


def keeps(text: str) -> bool:
    """Whether PostgreSQL can keep this text."""
    return "\x00" not in text and not any("\ud800" <= char <= "\udfff" for char in text)


def _shown(name: str) -> str:
    return name.replace("\x00", "\ufffd").encode("utf-8", "replace").decode()


def text_of(value: Json) -> str:
    """The value as JSON, decimals as they were written."""
    if isinstance(value, dict):
        fields = cast("dict[str, Json]", value).items()
        return "{" + ",".join(f"{json.dumps(name)}:{text_of(each)}" for name, each in fields) + "}"
    if isinstance(value, list):
        return "[" + ",".join(text_of(each) for each in cast("list[Json]", value)) + "]"
    return str(value) if isinstance(value, Decimal) else json.dumps(value)
