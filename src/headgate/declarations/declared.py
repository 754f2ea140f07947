"""A declared value together with the file and the lines it was read from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from headgate.errors import Fault

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
