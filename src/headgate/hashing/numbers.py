"""Numbers and times as text that every language spells alike: integers, or exact digits."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from math import isfinite, isnan

from headgate.hashing.hash_contract_types import MOST_DIGITS

_LONG = 2.0**63
_POWERS = tuple(float(10**scale) for scale in range(16))
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_DAY = date(1970, 1, 1).toordinal()
_MICROSECOND = timedelta(microseconds=1)
_IN_UNIT = {"s": 1_000_000, "ms": 1_000, "us": 1}
_UNIT_DIGITS = {"s": 0, "ms": 3, "us": 6}


def decimal_body(value: Decimal, scale: int | None) -> str:
    """A finite decimal, rounded half away from zero to its scale; exact where that is too long."""
    scaled = None if scale is None else scaled_decimal(value, scale)
    return exact_decimal(value) if scaled is None else str(scaled)


def scaled_decimal(value: Decimal, scale: int) -> int | None:
    """`value` × 10^scale as an integer; None when it has more digits than any table can hold."""
    sign, digits, exponent = value.as_tuple()
    # How many digits stay; an exponent can be two thousand million, so nothing is built before that.
    kept = len(digits) + int(exponent) + scale
    if kept < 0 or not any(digits):
        return 0
    if kept > MOST_DIGITS:
        return None
    whole = int("".join(map(str, digits[:kept])).ljust(kept, "0") or "0")
    scaled = whole + (kept < len(digits) and digits[kept] >= 5)
    if scaled >= 10**MOST_DIGITS:
        return None
    return -scaled if sign else scaled


def exact_decimal(value: Decimal) -> str:
    """Digits that do not end in zero, and the power of ten that they count: `12e2` is 1200."""
    sign, digits, exponent = value.as_tuple()
    text = "".join(map(str, digits)).lstrip("0")
    kept = text.rstrip("0")
    if not kept:
        return "0e0"
    return f"{'-' if sign else ''}{kept}e{int(exponent) + len(text) - len(kept)}"


def double_body(value: float, scale: int | None) -> str:
    """A double at its scale, rounded half to even; where that is no 64-bit integer, the double itself."""
    scaled = None if scale is None else scaled_double(value, scale)
    return exact_double(value) if scaled is None else str(scaled)


def scaled_double(value: float, scale: int) -> int | None:
    product = value * _POWERS[scale]
    return round(product) if -_LONG < product < _LONG else None


def exact_double(value: float) -> str:
    """As Java's Double.toHexString, with one zero and one NaN."""
    if not isfinite(value):
        return "NaN" if isnan(value) else f"{'-' if value < 0 else ''}Infinity"
    mantissa, _, exponent = (value + 0.0).hex().partition("p")
    whole, _, fraction = mantissa.partition(".")
    return f"{whole}.{fraction.rstrip('0') or '0'}p{int(exponent)}"


def date_body(value: date) -> str:
    """Days since 1970-01-01."""
    return str(value.toordinal() - _FIRST_DAY)


def timestamp_body(value: datetime, unit: str) -> str:
    """Whole units since 1970, rounded towards the past; a time without a zone is UTC."""
    return str((_in_utc(value) - _EPOCH) // _MICROSECOND // _IN_UNIT[unit])


def timestamp_iso(value: datetime, unit: str) -> str:
    """As version 1 writes it: `2024-01-31T12:30:00.123Z`."""
    utc, digits = _in_utc(value), _UNIT_DIGITS[unit]
    fraction = f".{utc.microsecond:06d}"[: digits + 1] if digits else ""
    return f"{utc.year:04d}-{utc:%m-%dT%H:%M:%S}{fraction}Z"


def _in_utc(value: datetime) -> datetime:
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def with_point(scaled: int, scale: int) -> str:
    """A scaled integer with its point put back: -5 at scale 2 is `-0.05`."""
    digits = f"{abs(scaled):0{scale + 1}d}"
    sign = "-" if scaled < 0 else ""
    return f"{sign}{digits[:-scale]}.{digits[-scale:]}" if scale else f"{sign}{digits}"
