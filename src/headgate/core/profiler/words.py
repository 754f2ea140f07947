"""What a profile says, in words for the comments of a manifest."""

from __future__ import annotations

import json
from collections.abc import Iterator

from headgate.core.profiler.profile_model import Bound, ColumnProfile, Key, Profile

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
