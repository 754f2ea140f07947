"""What is known of a Parquet file once it has been looked at."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, TypeAlias

Kind = Literal["text", "whole", "real", "decimal", "boolean", "date", "time", "nested", "nothing"]
Bound: TypeAlias = int | float | Decimal | str | bool


@dataclass(frozen=True)
class TimeText:
    """How the times of a text column are written, as far as a pattern must know it."""

    date_only: bool = False
    letter_t: bool = True
    blank: bool = False
    seconds: bool = True
    without_seconds: bool = False
    fraction: bool = False
    zoned: bool = False


@dataclass(frozen=True)
class ColumnProfile:
    """One column: its types on the way and what its values are like.

    `distinct` is a count of those looked at, `values` are all of them where they are few, and
    `beyond` counts values that JSON (NaN, infinities) or the type (nanoseconds) cannot hold.
    """

    name: str
    file_type: str
    kind: Kind
    kafka_type: str
    bronze_type: str
    nulls: int
    distinct: int
    low: Bound | None = None
    high: Bound | None = None
    values: tuple[Bound, ...] = ()
    beyond: int = 0
    whole: bool = False
    time: TimeText | None = None

    @property
    def is_moment(self) -> bool:
        """Whether it can be the event time."""
        return self.kind in ("date", "time") and self.low is not None


@dataclass(frozen=True)
class Looked:
    """How much of the file was looked at."""

    rows: int
    of: int

    @property
    def all(self) -> bool:
        return self.rows == self.of


@dataclass(frozen=True)
class Profile:
    """A Parquet file, column by column."""

    file: str
    looked: Looked
    columns: tuple[ColumnProfile, ...]
    counted: bool = True  # else the numbers of different values are estimates

    def column(self, name: str) -> ColumnProfile:
        return next(column for column in self.columns if column.name == name)


@dataclass(frozen=True)
class Key:
    """Columns that tell two rows apart; `sharing` rows have the same values as an earlier one.

    `repeated` rows are equal to an earlier one in every column: no key tells those apart.
    """

    columns: tuple[str, ...]
    sharing: int
    repeated: int
    given: bool = False
    others: tuple[tuple[str, ...], ...] = ()

    @property
    def unique(self) -> bool:
        return self.sharing == 0
