"""Days and microseconds since 1970 as dates and times, for every year that Spark knows.

Python's own dates end at the years 1 and 9999; Spark's go on to ±5,877,641.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

SECOND = 1_000_000
DAY = 86_400 * SECOND
_EPOCH = datetime(1970, 1, 1)
_FIRST = date(1970, 1, 1).toordinal()
# The calendar repeats every 400 years; counted from the first of March, the leap day comes last.
_ERA_YEARS, _ERA_DAYS, _MARCH_TO_EPOCH = 400, 146_097, 719_468
_MIN_DAYS, _MAX_DAYS = -(1 << 31), (1 << 31) - 1


class Day(NamedTuple):
    year: int
    month: int
    day: int

    def __str__(self) -> str:
        sign = "-" if self.year < 0 else "+" if self.year > 9999 else ""
        return f"{sign}{abs(self.year):04}-{self.month:02}-{self.day:02}"


def day_of(days: int) -> Day:
    """The date so many days after 1970-01-01."""
    era, rest = divmod(days + _MARCH_TO_EPOCH, _ERA_DAYS)
    year = (rest - rest // 1_460 + rest // 36_524 - rest // 146_096) // 365
    of_year = rest - (365 * year + year // 4 - year // 100)
    shifted = (5 * of_year + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9
    return Day(
        era * _ERA_YEARS + year + (month <= 2), month, of_year - (153 * shifted + 2) // 5 + 1
    )


def days_of(day: Day) -> int | None:
    """Days from 1970-01-01 to the date; None when there is no such date."""
    if not 1 <= day.month <= 12 or not 1 <= day.day <= days_in_month(day.year, day.month):
        return None
    years = day.year - (day.month <= 2)
    era, year = divmod(years, _ERA_YEARS)
    of_year = (153 * ((day.month + 9) % 12) + 2) // 5 + day.day - 1
    of_era = year * 365 + year // 4 - year // 100 + of_year
    days = era * _ERA_DAYS + of_era - _MARCH_TO_EPOCH
    return days if _MIN_DAYS <= days <= _MAX_DAYS else None


def days_in_month(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def day_of_year(days: int) -> int:
    first = days_of(Day(day_of(days).year, 1, 1))
    # Only the first year of all has no first of January; its last day is known instead.
    return days - first + 1 if first is not None else _from_the_end(days)


def _from_the_end(days: int) -> int:
    year = day_of(days).year
    last = days_of(Day(year, 12, 31)) or 0
    return 337 + days_in_month(year, 2) - (last - days)


def time_text(micros: int) -> str:
    """As Spark prints a time: a fraction without zeros at its end, none when it is zero."""
    days, rest = divmod(micros, DAY)
    seconds, fraction = divmod(rest, SECOND)
    minutes, second = divmod(seconds, 60)
    text = f"{day_of(days)} {minutes // 60:02}:{minutes % 60:02}:{second:02}"
    return f"{text}.{fraction:06}".rstrip("0") if fraction else text


def days_since(value: date) -> int:
    return value.toordinal() - _FIRST


def micros_since(value: datetime) -> int:
    """Of a point in time, or of a time on the clock as if it were UTC."""
    plain = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
    return (plain - _EPOCH) // timedelta(microseconds=1)


def as_date(days: int) -> date | int:
    """A date, or the days themselves where Python has no date for them."""
    ordinal = days + _FIRST
    return date.fromordinal(ordinal) if 1 <= ordinal <= date.max.toordinal() else days


def as_time(micros: int, *, zoned: bool) -> datetime | int:
    """A time, or the microseconds themselves where Python has no time for them."""
    try:
        plain = _EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        return micros
    return plain.replace(tzinfo=UTC) if zoned else plain
