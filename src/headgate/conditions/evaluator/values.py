"""Values as the evaluator holds them: days, microseconds and numbers with Spark's limits.

Dates are days and times microseconds since 1970, for every year that Spark knows: Python's own dates
end at the years 1 and 9999, Spark's at ±5,877,641. Numbers have fixed widths, exact decimals and NaN
in its place. `held` and `released` convert from and to Python's values.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal
from math import fmod, isinf, isnan, nan
from struct import pack, unpack
from typing import NamedTuple, TypeAlias

from headgate.conditions.ast import Operation
from headgate.declarations.types import SqlType

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


Number: TypeAlias = int | float | Decimal
# Enough for every digit of a double, and of a long text that says a number.
_EXACT = Context(prec=100_000, rounding=ROUND_HALF_UP)
RANGES = {
    "INT": (-(1 << 31), (1 << 31) - 1),
    "BIGINT": (-(1 << 63), (1 << 63) - 1),
}


def whole(value: int, kind: SqlType) -> int | None:
    """The value if the type holds it."""
    least, most = RANGES[kind.name]
    return value if least <= value <= most else None


def wrapped(value: int) -> int:
    """What is left of it in 32 bits: how Spark adds days."""
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


def rescaled(value: Decimal, kind: SqlType, rounding: str = ROUND_HALF_UP) -> Decimal | None:
    """The value at the type's scale; None if it has too many digits then."""
    precision, scale = kind.precision or 0, kind.scale or 0
    # Compared before it is rounded: a text may say 1e999999999.
    if value.adjusted() > precision - scale:
        return None if value else Decimal(0).scaleb(-scale)
    if value.adjusted() < -scale - 1:
        value = (
            Decimal(f"{(value.as_tuple().sign and '-') or ''}1E{-scale - 2}") if value else value
        )
    made = value.quantize(Decimal(1).scaleb(-scale), rounding=rounding, context=_EXACT)
    if not made:
        return made.copy_abs()
    return made if made.adjusted() < precision - scale else None


def at(value: Number, kind: SqlType) -> Number | None:
    """A number at a wider type."""
    if kind.name in {"DOUBLE", "FLOAT"}:
        return float(value)
    if kind.name == "DECIMAL" and not isinstance(value, float):
        return rescaled(Decimal(value), kind)
    return value


def operate(operator: Operation, left: Number, right: Number, kind: SqlType) -> Number | None:
    """The result at its type; None where there is none or it does not fit."""
    if operator in "/%" and right == 0:
        return None
    if kind.name == "DOUBLE":
        return _real(operator, float(left), float(right))
    if isinstance(left, int) and isinstance(right, int):
        return whole(_integral(operator, left, right), kind)
    return rescaled(_exact(operator, Decimal(left), Decimal(right)), kind)


def _real(operator: Operation, left: float, right: float) -> float:
    match operator:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "/":
            return left / right
        case "%":
            return nan if isinf(left) else fmod(left, right)


def _integral(operator: Operation, left: int, right: int) -> int:
    match operator:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case _:
            rest = abs(left) % abs(right)
            return -rest if left < 0 else rest


def _exact(operator: Operation, left: Decimal, right: Decimal) -> Decimal:
    match operator:
        case "+":
            return _EXACT.add(left, right)
        case "-":
            return _EXACT.subtract(left, right)
        case "*":
            return _EXACT.multiply(left, right)
        case _:
            return _EXACT.remainder(left, right)


def order(left: Number | str, right: Number | str) -> int:
    """Below zero, zero or above; NaN equals NaN and is greater than every number.

    Text is ordered by code points, which is the order of its UTF-8 bytes.
    """
    if isinstance(left, str) or isinstance(right, str):
        return (str(left) > str(right)) - (str(left) < str(right))
    if isnan(left) or isnan(right):
        return int(isnan(left)) - int(isnan(right))
    return (left > right) - (left < right)


Value: TypeAlias = None | bool | int | float | Decimal | str | date | datetime
# Dates are days since 1970, times microseconds since then.
Known: TypeAlias = bool | int | float | Decimal | str
Held: TypeAlias = Known | None


def held(value: Value, kind: SqlType) -> Held:
    """A value of that type as the evaluator holds it; dates and times may be given as whole numbers."""
    match value:
        case datetime():
            return micros_since(value)
        case date():
            return days_since(value)
        case bool() | str() | None:
            return value
        case _ if kind.name == "DOUBLE":
            return float(value)
        case _ if kind.name == "FLOAT":
            return narrowed(float(value))
        case int() | Decimal() if kind.name == "DECIMAL":
            return rescaled(Decimal(value), kind)
        case _:
            return value


def released(value: Held, kind: SqlType) -> Value:
    """The value as Python has it; a date or time beyond the year 9999 stays a whole number."""
    if not isinstance(value, int):
        return value
    if kind.name == "DATE":
        return as_date(value)
    return as_time(value, zoned=kind.name == "TIMESTAMP_LTZ") if kind.is_time else value


def narrowed(value: float) -> float:
    """The nearest FLOAT."""
    try:
        return unpack("f", pack("f", value))[0]
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
