"""`{t1}`, `{pk}` and the like in the text of a condition, put into names that the language knows."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass

from headgate.conditions.expr_literals import spark_column
from headgate.conditions.faults import ExprError, ExprFault
from headgate.conditions.spark import BATCH_TIME
from headgate.declarations.refusal import suggestion
from headgate.quality.spec.rule_set import RuleTable

# Text in quotes is passed over: a brace there stands for itself.
_FOUND = re.compile(
    r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`[^`]*`|\{(?P<name>[^{}'"`]*)\}(?P<dot>\.)?""",
    re.DOTALL,
)
_SIDES = {"t1": "onprem", "t2": "cloud"}


@dataclass(frozen=True)
class Filled:
    """The text without placeholders; `places` are pairs of a position in it and as written."""

    text: str
    places: tuple[tuple[int, int], ...]

    def written(self, position: int | None) -> int | None:
        """Where in the text as written a fault is that was found here; both count from 1."""
        if position is None:
            return None
        at = bisect_right(self.places, (position - 1, len(self.text) * 2)) - 1
        here, there = self.places[at]
        following = self.places[at + 1][1] if at + 1 < len(self.places) else None
        found = there + position - 1 - here
        return (found if following is None else min(found, following - 1)) + 1


class Placeholders:
    """What the placeholders of one table stand for."""

    def __init__(self, table: RuleTable) -> None:
        self._sources = {
            name: source.alias
            for placeholder, side in _SIDES.items()
            for known, source in table.sides.items()
            if known == side
            for name in (placeholder, source.alias)
        }
        self._is_pair = table.is_pair
        self._values = {"batch_time": BATCH_TIME, "pk": self._column("t1", table.pk)}
        if table.hash is not None:
            self._values["hash_onprem"] = self._column("t1", table.hash.onprem_field)
            self._values["hash_cloud"] = self._column("t2", table.hash.cloud_field)

    @property
    def known(self) -> tuple[str, ...]:
        return (*self._sources, *self._values)

    def fill(self, text: str) -> Filled:
        """The text with every placeholder replaced; an ExprError has those that are unknown."""
        parts, places, faults = list[str](), [(0, 0)], list[ExprFault]()
        done = length = 0
        for match in _FOUND.finditer(text):
            if match["name"] is None:
                continue
            try:
                value = self._value(match)
            except ExprError as error:
                faults += error.faults
                continue
            before = text[done : match.start()]
            parts += [before, value]
            places.append((length + len(before), match.start()))
            length += len(before) + len(value)
            places.append((length, match.end()))
            done = match.end()
        if faults:
            raise ExprError(faults)
        return Filled("".join((*parts, text[done:])), tuple(places))

    def _value(self, match: re.Match[str]) -> str:
        name, position = match["name"].strip(), match.start() + 1
        if name in self._sources:
            if match["dot"]:
                return f"{self._sources[name]}." if self._is_pair else ""
            what = f"{{{name}}} is a source, not a value"
            raise ExprError.of(what, fix=f"Write {{{name}}}.column.", position=position)
        if name in self._values:
            return self._values[name] + (match["dot"] or "")
        shown = [f"{{{known}}}" for known in self.known]
        near = suggestion(f"{{{name}}}", shown, "placeholders")
        raise ExprError.of(f"there is no placeholder {{{name}}}", fix=near, position=position)

    def _column(self, placeholder: str, name: str) -> str:
        return spark_column(name, self._sources[placeholder] if self._is_pair else "")
