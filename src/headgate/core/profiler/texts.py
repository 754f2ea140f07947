"""Times that a file holds as text, and the one pattern that all times of an event are read with."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from headgate.core.profiler.profile_model import ColumnProfile, TimeText

_DAY = r"\d{4}-\d{2}-\d{2}"
_ZONE = r"(Z|[+-]\d{2}:\d{2})"
_CLOCK = r"\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?"


def _sql(pattern: str) -> str:
    """The pattern's braces doubled: the fact is filled with the column's name."""
    return pattern.replace("{", "{{").replace("}", "}}")


_TIMES = f"regexp_full_match({{c}}, '{_sql(_DAY)}[T ]{_sql(_CLOCK)}{_sql(_ZONE)}?')"
_DAYS = f"regexp_full_match({{c}}, '{_sql(_DAY)}')"
# A text can look like a time and be none, such as 2024-02-30.
TEXT_FACTS: Mapping[str, str] = {
    "times": f"count_if({_TIMES} AND try_cast({{c}}[:10] AS DATE) IS NOT NULL"
    " AND try_cast({c}[12:13] AS INT) < 24 AND try_cast({c}[15:16] AS INT) < 60"
    " AND coalesce(try_cast(nullif({c}[18:19], '') AS INT), 0) < 60)",
    "days": f"count_if({_DAYS} AND try_cast({{c}} AS DATE) IS NOT NULL)",
    "zoned": f"count_if(regexp_matches({{c}}, ':.*{_sql(_ZONE)}$'))",
    "blank": "count_if({c}[11:11] = ' ')",
    "minutes": f"count_if(regexp_full_match({{c}}, '.{{{{11}}}}\\d\\d:\\d\\d{_sql(_ZONE)}?'))",
    "fraction": "count_if(contains({c}, '.'))",
}


def looks_timely(text: str) -> bool:
    """Whether it begins as a date does."""
    return bool(re.match(_DAY, text))


def text_time(column: ColumnProfile, found: Mapping[str, object], present: int) -> ColumnProfile:
    """The column as times or dates, when every text in it is one."""
    count = {name: int(str(found[name])) for name in TEXT_FACTS}
    if count["days"] == present:
        return replace(column, kind="date", bronze_type="DATE", time=TimeText(date_only=True))
    if count["times"] != present or count["zoned"] not in (0, present):
        return column
    time = TimeText(
        letter_t=count["blank"] < present,
        blank=count["blank"] > 0,
        seconds=count["minutes"] < present,
        without_seconds=count["minutes"] > 0,
        fraction=count["fraction"] > 0,
        zoned=count["zoned"] > 0,
    )
    name = "TIMESTAMP_LTZ" if time.zoned else "TIMESTAMP"
    return replace(
        column, kind="time", bronze_type=f"{name}({6 if time.fraction else 3})", time=time
    )


def written_time(column: ColumnProfile) -> TimeText:
    """How the generator writes the times of a column that has them as times."""
    if column.time is not None:
        return column.time
    if column.kind == "date":
        return TimeText(date_only=True)
    fine = any(unit in column.file_type for unit in ("[ms", "[us", "[ns"))
    return TimeText(fraction=fine, zoned="tz=" in column.file_type)


def time_pattern(times: Iterable[TimeText], *, nanoseconds: bool = False) -> str:
    """One Java pattern that reads all of them; what only some have stands in brackets."""
    known = list(times)
    clocks = [time for time in known if not time.date_only]
    if known and not clocks:
        return "yyyy-MM-dd"
    clock = f"{_separator(clocks)}{_clock(clocks, nanoseconds)}{_zone(clocks)}"
    return f"yyyy-MM-dd[{clock}]" if len(clocks) < len(known) else f"yyyy-MM-dd{clock}"


def _separator(clocks: list[TimeText]) -> str:
    letter, blank = not clocks or any(t.letter_t for t in clocks), any(t.blank for t in clocks)
    return "['T'][ ]" if letter and blank else " " if blank else "'T'"


def _clock(clocks: list[TimeText], nanoseconds: bool) -> str:
    if any(not t.seconds for t in clocks) and not any(t.seconds for t in clocks):
        return "HH:mm"
    fraction = "[.SSSSSSSSS]" if nanoseconds else "[.SSSSSS]"
    seconds = f":ss{fraction if any(t.fraction for t in clocks) else ''}"
    return f"HH:mm[{seconds}]" if any(t.without_seconds for t in clocks) else f"HH:mm{seconds}"


def _zone(clocks: list[TimeText]) -> str:
    zoned = [t.zoned for t in clocks]
    return "XXX" if zoned and all(zoned) else "[XXX]" if any(zoned) else ""
