"""Dates and times written as text in a condition, checked when it is compiled."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime

from headgate.conditions.ast import Literal
from headgate.declarations.refusal import Refusal
from headgate.declarations.spec_types import DATE, TIMESTAMP, TIMESTAMP_LTZ, SqlType

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIME = re.compile(
    r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?)?\s?(Z|[+-]\d{2}:\d{2})?"
)


def read_date(text: str) -> Literal:
    """`2024-01-31` as a DATE constant."""
    try:
        if _DATE.fullmatch(text):
            return Literal(date.fromisoformat(text), DATE)
    except ValueError:
        pass
    raise Refusal(f"'{text[:40]}' is not a date", "Write it as '2024-01-31'.")


def read_time(text: str, target: SqlType | None = None) -> Literal:
    """A time constant: zoned when `target` is, or, without a target, when the text is."""
    value = _parsed(text)
    if value is None:
        raise Refusal(f"'{text[:40]}' is not a time", "Write it as '2024-01-31 12:30:00'.")
    zoned = value.tzinfo is not None
    if target is None:
        target = TIMESTAMP_LTZ if zoned else TIMESTAMP
    if target.name == "TIMESTAMP":
        return _zoneless(value, text)
    return Literal(value.astimezone(UTC) if zoned else value.replace(tzinfo=UTC), TIMESTAMP_LTZ)


def _zoneless(value: datetime, text: str) -> Literal:
    if value.tzinfo is not None:
        raise Refusal(
            f"'{text[:40]}' has a time zone, the value beside it has none",
            "Leave the zone away, or declare the column as TIMESTAMP_LTZ.",
        )
    return Literal(value, TIMESTAMP)


def _parsed(text: str) -> datetime | None:
    if not _TIME.fullmatch(text):
        return None
    try:
        value = datetime.fromisoformat(text.replace(" Z", "Z").replace(" +", "+"))
        return value.astimezone(UTC) if value.tzinfo else value
    except (ValueError, OverflowError):
        return None
