"""Report what is wrong in a list of conditions. Each finding is certain; not all are found.

Terms are taken as independent: `a < b AND b < c AND c < a` is not seen to be impossible, nor is
what depends on how functions work (`trim(s) = ' a'`). Formulas of more than 128 boxes, and pairs
beyond a budget, are left out; what is left out for the budget is reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal as OneOf
from typing import TypeAlias

from headgate.conditions.analysis.formulas import Index, Region, covering, implies
from headgate.conditions.analysis.two_valued import Reader
from headgate.conditions.ast import Column, Expr, In, IsNull
from headgate.conditions.spark_sql import to_spark

Kind: TypeAlias = OneOf[
    "never_true",
    "always_true",
    "impossible",
    "no_effect",
    "duplicate",
    "contained",
    "unreachable",
    "skipped",
]
MOST_PAIRS = 200_000
NO_COLUMNS: Mapping[str, str] = MappingProxyType({})
_MOST_BEHIND = 60
_SHOWN = 60


@dataclass(frozen=True)
class Named:
    """A condition and what it is called."""

    name: str
    condition: Expr


@dataclass(frozen=True)
class Finding:
    """`other` is the condition that it is held against; `words` a sentence, `fix` what to do.

    `impossible` is a part that no value can meet, `no_effect` one that every value but NULL meets.
    """

    kind: Kind
    name: str
    other: str | None
    words: str
    fix: str


def analyse(
    conditions: Sequence[Named], known: Mapping[str, str] = NO_COLUMNS
) -> tuple[Finding, ...]:
    """All findings, in the order of the conditions; the first that matches is the one that counts.

    `known` are columns that are never NULL, each with the words that say why.
    """
    return tuple(_Analysis(conditions, known).findings())


class _Analysis:
    def __init__(self, conditions: Sequence[Named], known: Mapping[str, str]) -> None:
        self.conditions = conditions
        self.known = known
        self.readers = [Reader(known) for _ in conditions]
        self.regions = [
            Region(reader.read(named.condition))
            for reader, named in zip(self.readers, conditions, strict=True)
        ]
        self.index = Index(self.regions)
        self.pairs = 0
        self.unseen = 0

    def findings(self) -> Iterator[Finding]:
        for number, region in enumerate(self.regions):
            yield from self._alone(number, region)
            if region.is_usual:
                yield from self._beside(number, region)
        if self.unseen:
            yield Finding(
                "skipped",
                "",
                None,
                f"{self.unseen} pairs of rules were not compared with each other",
                "Spread the rules over more tables if you want them compared.",
            )

    def _alone(self, number: int, region: Region) -> Iterator[Finding]:
        name = self.conditions[number].name
        if region.is_never:
            odd = self.readers[number].odd
            why = next((self._odd_words(part, holds) for part, holds in odd), "")
            yield Finding(
                "never_true",
                name,
                None,
                f"`{name}` can match no row" + (f": {why}" if why else ""),
                "Correct the condition, or remove it.",
            )
            return
        if region.is_always:
            yield Finding(
                "always_true",
                name,
                None,
                f"`{name}` matches every row",
                "Correct the condition: no rule after it can give a row its status.",
            )
            return
        for part, holds in self.readers[number].odd:
            yield Finding(
                # A question for NULL that is always answered with no may be asked to be sure.
                "no_effect" if holds or isinstance(part, IsNull) else "impossible",
                name,
                None,
                f"a part of `{name}` decides nothing: {self._odd_words(part, holds)}",
                "Correct that part, or remove it.",
            )

    def _beside(self, number: int, region: Region) -> Iterator[Finding]:
        behind: list[int] = []
        contained: int | None = None
        for other in self.index.near(region):
            if other == number:
                continue
            if self.pairs >= MOST_PAIRS:
                self.unseen += 1
                continue
            self.pairs += 1
            if other < number:
                behind.append(other)
            if (contained is None or other < number) and implies(region, self.regions[other]):
                contained = other
                if other < number:
                    break
        if contained is not None:
            finding = self._within(number, contained)
            if finding is not None:
                yield finding
            return
        yield from self._behind(number, region, behind)

    def _within(self, number: int, other: int) -> Finding | None:
        name, outer = self.conditions[number].name, self.conditions[other].name
        if implies(self.regions[other], self.regions[number]):
            # Told once, of the later one.
            return None if other > number else _duplicate(name, outer)
        if other < number:
            return Finding(
                "unreachable",
                name,
                outer,
                f"`{name}` never gives a row its status: wherever it matches, `{outer}` matches too, "
                "and comes first",
                f"Put `{name}` before `{outer}`, or narrow `{outer}`.",
            )
        return Finding(
            "contained",
            name,
            outer,
            f"wherever `{name}` matches, `{outer}` matches too",
            f"Leave it so if `{name}` is the graver case; else remove one of them.",
        )

    def _behind(self, number: int, region: Region, earlier: list[int]) -> Iterator[Finding]:
        others = [(other, self.regions[other]) for other in earlier[:_MOST_BEHIND]]
        used = covering(region, others) if len(others) > 1 else []
        if not used:
            return
        name = self.conditions[number].name
        names = ", ".join(f"`{self.conditions[other].name}`" for other in used)
        yield Finding(
            "unreachable",
            name,
            self.conditions[used[0]].name,
            f"`{name}` never gives a row its status: wherever it matches, one of {names} matches too, "
            "and comes first",
            f"Put `{name}` before them, or narrow them.",
        )

    def _odd_words(self, part: Expr, holds: bool) -> str:
        text = to_spark(part)
        shown = text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
        if holds:
            return f"`{shown}` is true of every value there can be"
        if isinstance(part, In):
            return f"`{shown}` lists no value that there can be"
        if isinstance(part, IsNull):
            column = part.item.key if isinstance(part.item, Column) else ""
            return f"`{shown}` is true of no row: {self.known.get(column, 'there is a value')}"
        return f"`{shown}` is true of no value there can be"


def _duplicate(name: str, other: str) -> Finding:
    return Finding(
        "duplicate",
        name,
        other,
        f"`{name}` matches exactly the rows that `{other}` matches",
        f"Remove `{name}`, or correct its condition.",
    )
