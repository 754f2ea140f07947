"""What is wrong in the text of a condition, and where in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class ExprFault:
    """`position` counts the characters of the text from 1; None is the text as a whole."""

    what: str
    why: str
    fix: str
    position: int | None

    def sentence(self) -> str:
        place = f"at character {self.position}: " if self.position else ""
        why = f" ({self.why})" if self.why else ""
        return f"{place}{self.what}{why}. {self.fix}"


class ExprError(ValueError):
    """All faults found in one text; whoever knows its file makes a DeclarationError of them."""

    def __init__(self, faults: Sequence[ExprFault]) -> None:
        super().__init__("; ".join(fault.sentence() for fault in faults))
        self.faults = tuple(faults)

    @classmethod
    def of(cls, what: str, why: str = "", fix: str = "", position: int | None = None) -> ExprError:
        return cls([ExprFault(what, why, fix, position)])
