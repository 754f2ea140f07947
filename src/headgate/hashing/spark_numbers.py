"""Numbers and times as text in Spark SQL: total in both ANSI modes, the same in every time zone."""

from __future__ import annotations

from headgate.conditions.expr_literals import spark_literal
from headgate.hashing.hash_contract_types import MOST_DIGITS, MOST_SCALE
from headgate.hashing.spark_types import SparkType

# Doubles are exact up to here, and twice rounded still off by less than a half.
_SURE_DIGITS = 15
_LONG_DIGITS = 18
_LONG = "9223372036854775808D"
_DAY = 86_400_000_000
_UNITS = {"s": "unix_seconds", "ms": "unix_millis", "us": "unix_micros"}


def text(value: str) -> str:
    return f"CAST({value} AS STRING)"


def bound(value: str, name: str, body: str) -> str:
    """`body` with `value` worked out once under a name: SQL has no other way inside an expression."""
    return f"element_at(transform(array({value}), {name} -> {body}), 1)"


def decimal_body(column: str, kind: SparkType, scale: int | None) -> str:
    """NULL for NULL alone."""
    if scale is None:
        return exact_decimal(column, kind)
    carried = 1 if kind.scale > scale else 0
    digits = kind.digits + scale + carried
    if digits > MOST_DIGITS:
        return _perhaps_too_long(column, kind, scale)
    if digits <= _SURE_DIGITS:
        rounded = f"CAST({column} AS DECIMAL({digits}, {scale}))" if carried else column
        return text(_times_ten(f"CAST({rounded} AS DOUBLE)", scale))
    if digits <= _LONG_DIGITS:
        held = f"CAST({column} AS DECIMAL({_LONG_DIGITS}, {scale}))"
        return text(f"CAST({held} * {_power(scale)} AS BIGINT)")
    return _digits(f"CAST({column} AS DECIMAL({MOST_DIGITS}, {scale}))", scale)


def _times_ten(double: str, scale: int) -> str:
    product = f"{double} * {spark_literal(float(10**scale))}" if scale else double
    return f"CAST(rint({product}) AS BIGINT)"


def _power(scale: int) -> str:
    return f"{10**scale}BD"


def _digits(value: str, scale: int) -> str:
    """The unscaled digits. How a number below one is printed depends on the ANSI mode."""
    if scale == 0:
        return text(value)
    small = f"CAST({value} AS DECIMAL({scale + 1}, {scale})) * {_power(scale)}"
    whole = text(f"CAST({small} AS DECIMAL({MOST_DIGITS}, 0))")
    return f"IF(abs({value}) < 1BD, {whole}, replace({text(value)}, '.', ''))"


def _perhaps_too_long(column: str, kind: SparkType, scale: int) -> str:
    held = f"try_cast({column} AS DECIMAL({MOST_DIGITS}, {scale}))"
    fits = bound(held, "held", _digits("held", scale))
    return f"CASE WHEN {held} IS NOT NULL THEN {fits} ELSE {exact_decimal(column, kind)} END"


def exact_decimal(column: str, kind: SparkType) -> str:
    """Digits that do not end in zero, and their power of ten."""
    if kind.scale > MOST_SCALE["decimal"]:
        return bound(text(column), "said", _exact_of_text("said"))
    value = column if kind.name == "decimal" else f"CAST({column} AS DECIMAL(20, 0))"
    kept = "trim(TRAILING '0' FROM digits)"
    power = f"length(digits) - length({kept}) - {kind.scale}"
    told = f"IF(digits = '0', '0e0', concat({kept}, 'e', {power}))"
    return bound(_digits(value, kind.scale), "digits", told)


def _exact_of_text(said: str) -> str:
    """From however it was printed, 5E-8 or 0.00000005: no product holds so many digits."""
    mantissa = f"substring_index({said}, 'E', 1)"
    digits = f"trim(LEADING '0' FROM translate({mantissa}, '-.', ''))"
    kept = f"trim(TRAILING '0' FROM {digits})"
    point = f"IF(contains({said}, '.'), length(substring_index({mantissa}, '.', -1)), 0)"
    shift = f"IF(contains({said}, 'E'), try_cast(substring_index({said}, 'E', -1) AS INT), 0)"
    power = f"{shift} - {point} + length({digits}) - length({kept})"
    sign = f"IF(startswith({said}, '-'), '-', '')"
    return f"IF({kept} = '', '0e0', concat({sign}, {kept}, 'e', {power}))"


def double_body(column: str, kind: SparkType, scale: int | None) -> str:
    """NULL for NULL alone."""
    double = column if kind.name == "double" else f"CAST({column} AS DOUBLE)"
    if scale is None:
        return f"IF({column} IS NULL, NULL, format_string('%a', {double} + 0D))"
    product = f"{double} * {spark_literal(float(10**scale))}"
    whole = text(f"CAST(rint({product}) AS BIGINT)")
    other = f"WHEN {column} IS NOT NULL THEN format_string('%a', {double})"
    return f"CASE WHEN abs({product}) < {_LONG} THEN {whole} {other} END"


def timestamp_body(column: str, kind: SparkType, unit: str) -> str:
    """Whole units since 1970; a time without a zone is UTC, whatever the session's zone."""
    if kind.name == "timestamp":
        return text(f"{_UNITS[unit]}({column})")
    day = f"unix_date(CAST({column} AS DATE))"
    seconds = f"({day} * 86400L + hour({column}) * 3600 + minute({column}) * 60 + second({column}))"
    if unit == "s":
        return text(seconds)
    micros = f"CAST(extract(SECOND FROM {column}) * 1000000 AS BIGINT) % 1000000"
    if unit == "ms":
        return text(f"({seconds} * 1000 + ({micros}) div 1000)")
    # The very first second of Spark's calendar does not fit 64 bits as a product.
    return text(f"(CAST({seconds} AS DECIMAL(20, 0)) * 1000000 + {micros})")


def timestamp_iso(column: str, kind: SparkType, unit: str) -> str:
    """As version 1 writes it: `2024-01-31T12:30:00.123Z`."""
    count = f"CAST({timestamp_body(column, kind, 'us')} AS DECIMAL(20, 0))"
    parts = [
        f"CAST(date_from_unix_date(CAST((at - pmod(at, {_DAY})) / {_DAY} AS INT)) AS STRING)",
        "'T'",
        f"lpad(pmod(at, {_DAY}) div 3600000000, 2, '0')",
        "':'",
        "lpad(pmod(at, 3600000000) div 60000000, 2, '0')",
        "':'",
        "lpad(pmod(at, 60000000) div 1000000, 2, '0')",
    ]
    if unit != "s":
        digits = "lpad(CAST(pmod(at, 1000000) AS INT), 6, '0')"
        parts += ["'.'", digits if unit == "us" else f"left({digits}, 3)"]
    return bound(count, "at", f"concat({', '.join(parts)}, 'Z')")


def with_point(body: str, scale: int) -> str:
    """A scaled integer with its point put back; exact and hexadecimal numbers as they are."""
    if scale == 0:
        return body
    digits = f"lpad(ltrim('-', whole), greatest(length(ltrim('-', whole)), {scale + 1}), '0')"
    sign = "IF(startswith(whole, '-'), '-', '')"
    told = (
        f"concat({sign}, left({digits}, length({digits}) - {scale}), '.', right({digits}, {scale}))"
    )
    return bound(body, "whole", f"IF(whole RLIKE '[a-zN]', whole, {told})")
