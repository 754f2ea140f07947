"""Reads a character class, `[a-z_]` or `[^,]`."""

from __future__ import annotations

from typing import NoReturn

from headgate.conditions.regex.chars import DIGIT, SPACE, WORD, CharSet
from headgate.conditions.regex.escapes import escaped
from headgate.conditions.regex.regex_nodes import PatternRefusal

_SHORT = {"d": DIGIT, "w": WORD, "s": SPACE}


class ClassReader:
    """Stands on the opening bracket at first, behind the closing one at last."""

    def __init__(self, text: str, at: int) -> None:
        self.text = text
        self.start = self.at = at

    def set(self) -> CharSet:
        self.at += 1
        negated = self.text.startswith("^", self.at)
        self.at += negated
        if self.text.startswith("]", self.at):
            self.refuse("the class is empty", "Write \\] for the sign itself.")
        found = CharSet(())
        while not self.text.startswith("]", self.at):
            found |= self.part()
        self.at += 1
        result = found.inverse if negated else found
        if not result:
            self.refuse("the class has no character", "Write what may stand there.", self.start)
        return result

    def refuse(self, what: str, fix: str, at: int | None = None) -> NoReturn:
        raise PatternRefusal((self.at if at is None else at) + 1, what, fix)

    def part(self) -> CharSet:
        low = self.item()
        if not self.is_range(low):
            return low
        self.at += 1
        place = self.at
        high = self.item()
        first, last = low.single, high.single
        if first is None or last is None or first > last:
            self.refuse(
                "this is no range", "Write it from low to high, or \\- for the sign.", place - 1
            )
        return CharSet.of([(first, last)])

    def is_range(self, low: CharSet) -> bool:
        following = self.text[self.at : self.at + 2]
        return low.single is not None and following[:1] == "-" and following[1:] not in {"", "]"}

    def item(self) -> CharSet:
        sign = self.text[self.at : self.at + 1]
        if not sign:
            self.refuse("the class is not closed", "Write ] where it ends.", self.start)
        if sign == "[" or self.text.startswith("&&", self.at):
            self.refuse(f"`{sign}` means something else in Java here", f"Write \\{sign}.")
        if sign != "\\":
            self.at += 1
            return CharSet.one(sign)
        letter = self.text[self.at + 1 : self.at + 2]
        short = _SHORT.get(letter.lower()) if letter else None
        if short is not None:
            self.at += 2
            return short.inverse if letter.isupper() else short
        character, self.at = escaped(self.text, self.at)
        return CharSet.one(character)
