"""Quality filters that the values suggest; whether they are rules only a person can say."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta

from headgate.conditions.expr_literals import spark_identifier, spark_literal
from headgate.core.profiler.profile_model import ColumnProfile, Profile

FEW = 12
_ENOUGH_ROWS = 100
_LONGEST_VALUE = 40


def proposed_filters(profile: Profile, event_time: str) -> tuple[str, ...]:
    """Conditions of the closed language that all rows looked at fulfil."""
    return tuple(
        text for column in profile.columns for text in _proposals(column, profile, event_time)
    )


def _proposals(column: ColumnProfile, profile: Profile, event_time: str) -> Iterator[str]:
    name = spark_identifier(column.name)
    if column.name == event_time:
        yield from _days(column, name)
    elif column.kind in ("whole", "real", "decimal") and column.low is not None:
        yield _or_null(column, _range(column, name))
    elif _is_list(column, profile):
        yield _or_null(column, f"{name} IN ({', '.join(map(spark_literal, column.values))})")


def _or_null(column: ColumnProfile, condition: str) -> str:
    if not column.nulls:
        return condition
    return f"{spark_identifier(column.name)} IS NULL OR {condition}"


def _range(column: ColumnProfile, name: str) -> str:
    low, high = float(column.low or 0), float(column.high or 0)
    if low < 0:
        return f"{name} BETWEEN {_number(low)} AND {_number(high)}"
    return f"{name} >= {1 if low == 1 else 0}"


def _number(value: float) -> str:
    """Digits as a person would write them."""
    return f"{value:.0f}" if value.is_integer() and abs(value) < 1e15 else f"{value!r}"


def _is_list(column: ColumnProfile, profile: Profile) -> bool:
    texts = [value for value in column.values if isinstance(value, str)]
    few = 1 < len(texts) == column.distinct <= FEW
    return (
        few
        and profile.looked.rows >= _ENOUGH_ROWS
        and all(len(text) <= _LONGEST_VALUE and text.isprintable() for text in texts)
    )


def _days(column: ColumnProfile, name: str) -> Iterator[str]:
    """From the first day to the last; rows of other days would be kept out."""
    try:
        first, last = (date.fromisoformat(str(text)[:10]) for text in (column.low, column.high))
        after = last + timedelta(days=1)
    except (ValueError, OverflowError):
        return
    yield f"CAST({name} AS DATE) >= DATE '{first}'"
    yield f"CAST({name} AS DATE) < DATE '{after}'"
