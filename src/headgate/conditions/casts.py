"""Which types may be cast to which, and which of those casts succeed for every value."""

from __future__ import annotations

from headgate.declarations.spec_types import SqlType

# Not here: what depends on how a double is printed, and what overflows for far-off years even in
# Spark's trying form (DATE to a time, one kind of time to the other).
_ADMITTED: dict[str, frozenset[str]] = {
    "STRING": frozenset(
        {"BOOLEAN", "INT", "BIGINT", "DOUBLE", "DECIMAL", "DATE", "TIMESTAMP", "TIMESTAMP_LTZ"}
    ),
    "BOOLEAN": frozenset({"STRING", "INT", "BIGINT"}),
    "INT": frozenset({"STRING", "BOOLEAN", "BIGINT", "DOUBLE", "DECIMAL"}),
    "BIGINT": frozenset({"STRING", "BOOLEAN", "INT", "DOUBLE", "DECIMAL"}),
    "DECIMAL": frozenset({"STRING", "INT", "BIGINT", "DOUBLE", "DECIMAL"}),
    "FLOAT": frozenset({"INT", "BIGINT", "DOUBLE", "DECIMAL"}),
    "DOUBLE": frozenset({"INT", "BIGINT", "DECIMAL"}),
    "DATE": frozenset({"STRING"}),
    "TIMESTAMP": frozenset({"STRING", "DATE"}),
    "TIMESTAMP_LTZ": frozenset({"STRING", "DATE"}),
}
_ALWAYS = frozenset(
    {("INT", "BIGINT"), ("INT", "DOUBLE"), ("BIGINT", "DOUBLE"), ("DECIMAL", "DOUBLE")}
    | {("FLOAT", "DOUBLE"), ("INT", "BOOLEAN"), ("BIGINT", "BOOLEAN")}
    | {("BOOLEAN", "INT"), ("BOOLEAN", "BIGINT")}
    | {("TIMESTAMP", "DATE"), ("TIMESTAMP_LTZ", "DATE")}
)
# The digits before the point that a whole number can have.
INTEGER_DIGITS = {"INT": 10, "BIGINT": 20}
# Beyond this scale the two ANSI modes print a small decimal differently (1E-7 or 0.0000001).
MAX_PRINTED_SCALE = 6
# A DOUBLE becomes a DECIMAL by way of its text, which from the 17th digit on differs between
# versions of Java.
SURE_DIGITS = 15


def is_admitted(source: SqlType, target: SqlType) -> bool:
    """Whether a cast between the two is part of the language."""
    if target.name not in _ADMITTED.get(source.name, frozenset()):
        return False
    if target.name == "DECIMAL" and source.name in {"FLOAT", "DOUBLE"}:
        return (target.precision or 0) <= SURE_DIGITS
    return target.name != "STRING" or (source.scale or 0) <= MAX_PRINTED_SCALE


def never_fails(source: SqlType, target: SqlType) -> bool:
    """Whether every value of `source` has a counterpart in `target`."""
    if target.name == "STRING" or (source.name, target.name) in _ALWAYS:
        return True
    if target.name != "DECIMAL":
        return source.name == target.name
    whole, scale = digits(source)
    room = (target.precision or 0) - (target.scale or 0)
    return whole is not None and whole <= room and scale <= (target.scale or 0)


def digits(kind: SqlType) -> tuple[int | None, int]:
    """Digits before and after the point; None before it when there is no bound."""
    if kind.name == "DECIMAL":
        return (kind.precision or 0) - (kind.scale or 0), kind.scale or 0
    return INTEGER_DIGITS.get(kind.name), 0
