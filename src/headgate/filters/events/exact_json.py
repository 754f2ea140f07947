"""JSON that keeps every number as it was written, and finds what PostgreSQL's jsonb could not keep."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal, InvalidOperation
from typing import cast

Json = object
Steps = tuple[str | int, ...]
MOST_DEPTH = 40
MOST_DIGITS = 300
# Of all events of one request.
MOST_ITEMS = 100_000
UNKEPT = "has a character that cannot be kept (NUL, or half of a surrogate pair)"
REPEATED = "is given twice"


class NotJsonError(ValueError):
    """The text is no JSON; the words say where it ends to be."""


class HugeNumber(str):
    """A number of more digits than are kept, as it was written."""


class RepeatedKeys(dict[str, "Json"]):
    """An object in which keys were given more than once; it has the last value of each."""

    def __init__(self, pairs: Sequence[tuple[str, Json]]) -> None:
        super().__init__(pairs)
        counts = Counter(name for name, _ in pairs)
        self.repeated = tuple(name for name, count in counts.items() if count > 1)


def parsed(text: bytes) -> Json:
    """The value; decimals stay exact.

    What JSON allows and PostgreSQL does not is kept in the value and found by `unkept`, so that in a
    list of events each is judged by itself.
    """
    try:
        value = json.loads(
            text,
            parse_float=_decimal,
            parse_int=_integer,
            parse_constant=_refuse_constant,
            object_pairs_hook=_object,
        )
    except RecursionError:
        raise NotJsonError("it is nested too deep") from None
    except ValueError as error:  # not UTF-8, not JSON
        raise NotJsonError(str(error).partition("\n")[0]) from None
    if _is_too_many(value):
        raise NotJsonError(f"it has more than {MOST_ITEMS:,} values")
    return value


def _decimal(text: str) -> Json:
    try:
        return Decimal(text)
    except InvalidOperation:  # an exponent that Decimal has no place for
        return HugeNumber(text)


def _integer(text: str) -> Json:
    return int(text) if len(text) <= MOST_DIGITS + 1 else HugeNumber(text)


def _object(pairs: list[tuple[str, Json]]) -> Json:
    made = dict(pairs)
    return made if len(made) == len(pairs) else RepeatedKeys(pairs)


def _refuse_constant(name: str) -> Json:
    raise ValueError(f"{name} is no JSON")


def _is_too_many(value: Json) -> bool:
    level, items = [value], 1
    while level:
        nested = [inside for one in level if (inside := _inside(one)) is not None]
        items += sum(map(len, nested))
        if items > MOST_ITEMS:
            return True
        level = [one for values in nested for one in values]
    return False


def _inside(value: Json) -> Sequence[Json] | None:
    """What an object or a list has in it; None for anything else."""
    if isinstance(value, dict):
        return list(cast("dict[str, Json]", value).values())
    return cast("list[Json]", value) if isinstance(value, list) else None


def unkept(value: Json) -> Iterator[tuple[Steps, str]]:
    """Where something stands that PostgreSQL's jsonb refuses, and what it is."""
    waiting: list[tuple[Steps, Json]] = [((), value)]
    while waiting:
        steps, found = waiting.pop()
        if why := _why_unkept(found, len(steps)):
            yield steps, why
        elif isinstance(found, dict):
            fields = cast("dict[str, Json]", found)
            if isinstance(found, RepeatedKeys):
                yield from (((*steps, _shown(name)), REPEATED) for name in found.repeated)
            yield from (((*steps, _shown(name)), UNKEPT) for name in fields if not keeps(name))
            waiting += [((*steps, name), each) for name, each in fields.items() if keeps(name)]
        elif isinstance(found, list):
            items = cast("list[Json]", found)
            waiting += [((*steps, number), each) for number, each in enumerate(items)]


def _why_unkept(value: Json, depth: int) -> str:
    if isinstance(value, HugeNumber):
        return f"has more than {MOST_DIGITS} digits"
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
