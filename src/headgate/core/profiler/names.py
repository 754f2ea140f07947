"""Plain names for columns: snake_case, ASCII, none twice."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable

_BEFORE_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_NOT_PLAIN = re.compile(r"[^a-z0-9]+")
# Letters that have no plain letter inside them.
_LETTERS = str.maketrans({"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ł": "l", "ı": "i"})


def snake_case(text: str) -> str:
    """`PULocationID` as `pu_location_id`; empty when nothing of the text is left."""
    worded = _BEFORE_WORD.sub("_", text.replace("%", " percent ").replace("#", " number "))
    plain = unicodedata.normalize("NFKD", worded.lower().translate(_LETTERS))
    kept = plain.encode("ascii", "ignore").decode()
    return _NOT_PLAIN.sub("_", kept).strip("_")


def plain_names(texts: Iterable[str], taken: Collection[str]) -> tuple[str, ...]:
    """A name for each text, in order: none of those taken, none twice."""
    used, names = set(taken), list[str]()
    for number, text in enumerate(texts, start=1):
        base = snake_case(text) or f"column_{number}"
        base = f"n_{base}" if base[0].isdigit() else base
        names.append(free_name(used, base))
        used.add(names[-1])
    return tuple(names)


def free_name(taken: Collection[str], *wishes: str) -> str:
    """The first wish that nobody has, else the last with the lowest number that is free."""
    for wish in wishes:
        if wish not in taken:
            return wish
    number = 2
    while f"{wishes[-1]}_{number}" in taken:
        number += 1
    return f"{wishes[-1]}_{number}"
