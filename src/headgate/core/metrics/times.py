"""Times that saturate: a record may say any year, and none of them may break a job.

Python knows the years 1 to 9999, Spark many more. What lies outside counts as the first or the last
moment here.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST = datetime.min.replace(tzinfo=UTC)
# A whole second, so that something is behind it: windows "before the end of time" include it.
LAST = datetime.max.replace(microsecond=0, tzinfo=UTC)
END = datetime.max.replace(tzinfo=UTC)


def moment(micros: int) -> datetime:
    """So many microseconds after the epoch."""
    try:
        return min(EPOCH + timedelta(microseconds=micros), LAST)
    except OverflowError:
        return FIRST if micros < 0 else LAST


def earlier(time: datetime, by: timedelta) -> datetime:
    try:
        return time - by
    except OverflowError:
        return FIRST


def later(time: datetime, by: timedelta) -> datetime:
    try:
        return time + by
    except OverflowError:
        return END
