"""Values that are another in every batch, kept out of the code that Spark generates.

A number or a time that stands in a statement is written into that code, and code that is new with each
batch is compiled and warmed up with each batch. An array is handed over beside it.
"""

from __future__ import annotations

from collections.abc import Iterable

# Always 0, but only a row can tell: so nothing is worked out beforehand.
_PLACE = "shiftright(octet_length(pk), 31)"


def steady(value: str) -> str:
    """The value, as SQL over rows that have a key."""
    return f"get(array({value}), {_PLACE})"


def now() -> str:
    """The time of a streaming query's batch, as SQL.

    Spark puts it in after it has optimized, so that an array alone would be filled by generated code.
    What is inside a lambda is not generated.
    """
    return "get(transform(array(current_timestamp()), at -> at), 0)"


def listed(values: Iterable[int]) -> str:
    """Whole numbers by their place, as SQL; there must be at least one."""
    return f"array({', '.join(f'{value}L' for value in values)})"
