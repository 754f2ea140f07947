"""Why a declared value is refused, and where a value stands in its file.

`Refusal` is raised where the file is not known: what is wrong, why, what to write instead.
`Declared` is a loaded value with its file and lines, so that faults found after loading still
point at the line that caused them. `json_pointer` names a place in a JSON document (RFC 6901).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Generic, TypeVar

from headgate.errors import Fault

# Faults are listed up to this number; a reader corrects those first.
MOST_FAULTS = 100
# Half of a character, which JSON can name and no file, database or validator can hold.
HALF = re.compile(r"[\ud800-\udfff]")


class Refusal(ValueError):
    """A value that is not accepted: what is wrong with it, why, and what to write instead.

    `key` is the key inside the value that is at fault, where it is one.
    """

    def __init__(self, what: str, fix: str, why: str = "", key: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.fix = fix
        self.why = why
        self.key = key


def suggestion(word: str, known: Iterable[str], noun: str) -> str:
    """The nearest known word, or all of them when none is near."""
    names = sorted(set(known))
    by_folded = {name.casefold(): name for name in names}
    near = get_close_matches(word.casefold(), list(by_folded), n=1, cutoff=0.6)
    if near:
        return f"Did you mean `{by_folded[near[0]]}`?"
    if not names:
        return f"There are no {noun} to choose from."
    return f"Known {noun}: {', '.join(names)}."


def json_pointer(steps: Iterable[object]) -> str:
    """`("tags", 3, "a/b")` as `/tags/3/a~1b`; no step is the whole document."""
    escaped = (str(step).replace("~", "~0").replace("/", "~1") for step in steps)
    return "".join(f"/{step}" for step in escaped)


Value = TypeVar("Value")
_LAST_STEP = re.compile(r"(\.[^.\[\]]+|\[\d+\])$")


def line_of(lines: Mapping[str, int], pointer: str) -> int | None:
    """The line of `pointer`, or of the nearest thing around it that stands in the file."""
    while pointer not in lines and pointer:
        shorter = _LAST_STEP.sub("", pointer)
        pointer = shorter if shorter != pointer else ""
    return lines.get(pointer)


@dataclass(frozen=True)
class Declared(Generic[Value]):
    """`lines` maps pointers like `columns[3].silver_type` to lines, counted from 1.

    `notes` are what a person should be told of the file although it is valid.
    """

    value: Value
    file: str
    lines: Mapping[str, int]
    notes: tuple[str, ...] = ()

    def fault(
        self, pointer: str, what: str, why: str, fix: str, column: int | None = None
    ) -> Fault:
        """A fault found later than loading, at the place where its cause was written."""
        said = f"{what}: {why}" if why else what
        return Fault(self.file, line_of(self.lines, pointer), pointer, said, fix, column)
