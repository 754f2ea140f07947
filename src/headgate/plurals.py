"""Numbers with their nouns, in the words that a person reads."""

from __future__ import annotations


def count_of(n: int, noun: str, plural: str = "") -> str:
    """`1 row`, `2 rows`, `1,000 batches`."""
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"
