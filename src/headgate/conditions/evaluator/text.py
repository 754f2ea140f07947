"""Text: characters are code points, as in Spark."""

from __future__ import annotations

import re
from functools import lru_cache

_PIECES = re.compile(r"\\(.)|([%_])|([^\\%_]+)", re.DOTALL)


@lru_cache(maxsize=1_000)
def _pattern(pattern: str) -> re.Pattern[str]:
    wild = {"%": ".*", "_": "."}
    parts = [
        wild[sign] if sign else re.escape(taken or plain)
        for taken, sign, plain in _PIECES.findall(pattern)
    ]
    return re.compile("".join(parts), re.DOTALL)


def like(text: str, pattern: str) -> bool:
    return _pattern(pattern).fullmatch(text) is not None


def substring(text: str, place: int, count: int) -> str:
    """From a place counted from 1, or from the end when it is negative; what is outside is cut."""
    start = place - 1 if place > 0 else len(text) + place if place < 0 else 0
    return text[max(start, 0) : max(start + count, 0)] if count > 0 else ""


def right(text: str, count: int) -> str:
    return text[-count:] if count > 0 else ""
