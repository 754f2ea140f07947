"""Lengths of time as declarations write them: `10 SECONDS`, `5 MINUTES`, `1 HOUR`, `7 DAYS`."""

from __future__ import annotations

import re
from datetime import timedelta

from headgate.declarations.refusal import Refusal

_FORM = re.compile(r"([1-9][0-9]{0,8}) +(SECOND|MINUTE|HOUR|DAY)S?", re.IGNORECASE)
# Ten years: beyond it lies no window, and at some length no calendar and no BIGINT.
LONGEST = timedelta(days=3_650)
_UNITS = {"SECOND": 1, "MINUTE": 60, "HOUR": 3600, "DAY": 86_400}


def duration(value: object) -> timedelta:
    """The length of time that a text like `10 SECONDS` says."""
    if isinstance(value, timedelta):
        return value
    found = _FORM.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        example = "Write for example 10 SECONDS, 5 MINUTES or 1 HOUR."
        raise Refusal(f"`{value}` is no length of time", example)
    length = timedelta(seconds=int(found[1]) * _UNITS[found[2].upper()])
    if length > LONGEST:
        raise Refusal(f"`{value}` is more than {in_words(LONGEST)}", f"Write {in_words(LONGEST)}.")
    return length


def in_words(length: timedelta) -> str:
    """As `duration` reads it, in the largest unit that is exact."""
    seconds = int(length.total_seconds())
    unit, size = next((u, s) for u, s in reversed(_UNITS.items()) if seconds % s == 0)
    return f"{seconds // size} {unit}{'S' if seconds != size else ''}"
