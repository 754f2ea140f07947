"""Rules that values suggest, before they are written: what, why, and how many rows they would flag."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from headgate.core.profiler.draw_up import Draft
from headgate.core.profiler.profile_model import ColumnProfile

Scalar: TypeAlias = str | int | float | bool
Setting: TypeAlias = Scalar | tuple[Scalar, ...]
Part: TypeAlias = Literal["rules", "aggregates"]


@dataclass(frozen=True)
class Numbers:
    """How a column's numbers are spread."""

    below_zero: int
    low: float
    high: float


@dataclass(frozen=True)
class Order:
    """Two columns of times: how often the first is after the second, and before it."""

    first: str
    second: str
    after: int
    before: int


@dataclass(frozen=True)
class Facts:
    """What a second look found; `forms` are patterns of text by column."""

    numbers: Mapping[str, Numbers] = field(default_factory=dict[str, Numbers])
    orders: tuple[Order, ...] = ()
    forms: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class Suggestion:
    """One proposed rule or aggregate.

    `flags` is the condition that DuckDB counts over the rows looked at; `rows` is what it counted,
    or None where a file cannot tell. One that is `off` is written as a comment.
    """

    name: str
    settings: Mapping[str, Setting]
    why: str
    part: Part = "rules"
    flags: str = ""
    rows: int | None = None
    off: bool = False


@dataclass(frozen=True)
class Place:
    """Where the rows come from and what the table is called."""

    table: str
    topic: str
    dlq_topic: str | None
    pk: str
    event_time: str | None
    sensitive: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Suggested:
    """All that was found: the draft it stands on, where it goes, and the rules."""

    draft: Draft
    place: Place
    found: tuple[Suggestion, ...]

    def of(self, part: Part) -> tuple[Suggestion, ...]:
        return tuple(one for one in self.found if one.part == part)

    @property
    def columns(self) -> tuple[ColumnProfile, ...]:
        return self.draft.profile.columns
