"""The profile of a Parquet file as values, with plain column names and one-line descriptions.

Pure: no file and no database is touched here.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, TypeAlias

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


_LONGEST = 32
FEW_KEYS = 12


def about_rows(profile: Profile) -> Iterator[str]:
    looked = profile.looked
    if not looked.of:
        yield "The file has no rows: types come from its columns, keys and times from their names alone."
    elif looked.all:
        yield f"All {looked.of:,} rows were looked at."
    else:
        yield f"{looked.rows:,} of {looked.of:,} rows were looked at, spread over the file; what stands"
        yield "here about values is true of those. The key was held against all rows."
    if not profile.counted:
        yield "The numbers of different values are estimates."


def about_column(column: ColumnProfile, rows: int) -> Iterator[str]:
    """One line of facts, and one for each thing to know."""
    if not rows:
        yield f"{column.file_type}; the file has no rows"
    elif column.nulls == rows:
        yield f"{column.file_type}; all values are null: check the type"
    else:
        facts = [column.file_type, _nulls(column, rows), _distinct(column), _span(column)]
        yield "; ".join(fact for fact in facts if fact)
    yield from _notes(column)


def _nulls(column: ColumnProfile, rows: int) -> str:
    if not column.nulls:
        return "never null"
    share = 100 * column.nulls / rows
    return f"{column.nulls:,} null ({share:.1f}%)" if share >= 0.05 else f"{column.nulls:,} null"


def _distinct(column: ColumnProfile) -> str:
    return f"{column.distinct:,} different" if column.distinct else ""


def _span(column: ColumnProfile) -> str:
    if column.values and len(column.values) <= 5:
        return ", ".join(shown(value) for value in column.values)
    if column.low is None or column.high is None:
        return ""
    return f"{shown(column.low)} to {shown(column.high)}"


def shown(value: Bound) -> str:
    text = value if isinstance(value, str) else str(value)
    short = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    return json.dumps(short) if not short.isprintable() or not short.strip() else short


def _notes(column: ColumnProfile) -> Iterator[str]:
    if column.kind == "nested":
        yield "nested: it goes as its JSON text"
    if column.time is not None:
        yield "text that is a time in every row looked at; another text makes a dead letter"
    if column.kind == "real" and column.whole:
        yield "all values are whole numbers: BIGINT would do as silver_type"
    if column.file_type.startswith("duration"):
        yield f"a duration, as a number of {column.file_type[9:-1]}"
    if column.file_type == "uint64":
        yield "unsigned: its greatest values have no room in BIGINT"
    yield from about_losses(column)


def about_losses(column: ColumnProfile) -> Iterator[str]:
    """What the way to bronze does not bear."""
    if column.kind == "real" and column.beyond:
        yield f"{column.beyond:,} are NaN or infinite, which JSON cannot say: those rows become dead letters"
    if column.kind == "time" and column.beyond:
        yield f"{column.beyond:,} are finer than a microsecond: {_nanoseconds(column)}"


def _nanoseconds(column: ColumnProfile) -> str:
    if column.bronze_type == "STRING":
        return "they stay text, which keeps all digits"
    return "bronze keeps microseconds, the rest is cut off"


def about_key(key: Key, profile: Profile) -> Iterator[str]:
    rows = profile.looked.of
    if not rows:
        yield "The file has no rows: this is a guess."
        return
    if key.unique:
        yield f"All {rows:,} rows differ in them."
    elif key.sharing == key.repeated:
        yield f"{key.repeated:,} of {rows:,} rows repeat another in every column; all others differ in these."
    else:
        yield f"{key.sharing:,} of {rows:,} rows have the values of another row: silver will have one of"
        yield "each. If those are events of their own, name more columns."
    for other in key.others:
        yield f"As good: {', '.join(other)}."


def about_event_time(profile: Profile, event_time: str) -> Iterator[str]:
    absent = sum(column.nulls for column in profile.columns if column.name == event_time)
    if absent:
        yield f"{absent:,} of {profile.looked.rows:,} rows have no {event_time}: silver leaves them out."


def about_spread(column: ColumnProfile) -> Iterator[str]:
    if column.distinct < FEW_KEYS:
        yield f"It has only {column.distinct:,} different values: partitions will fill unevenly."
