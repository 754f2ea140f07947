"""Declared columns held against those that a table of the lake has, before anything is judged."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from headgate.declarations.refusal import suggestion
from headgate.declarations.spec_types import SqlType
from headgate.errors import Fault

_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_WHOLE = frozenset({"tinyint", "smallint", "int", "bigint"})
_NUMBERS = _WHOLE | {"float", "double", "decimal"}
_TIMES = frozenset({"date", "timestamp", "timestamp_ntz"})
# What can be read as each type without losing a part of the value. A text is tried row by row.
_READ_AS = {
    "STRING": _NUMBERS | _TIMES | {"boolean", "binary"},
    "BOOLEAN": frozenset({"boolean"}),
    "INT": _WHOLE | {"decimal"},
    "BIGINT": _WHOLE | {"decimal"},
    "DECIMAL": _WHOLE | {"decimal"},
    "FLOAT": _NUMBERS,
    "DOUBLE": _NUMBERS,
    "DATE": frozenset({"date"}),
    "TIMESTAMP": _TIMES,
    "TIMESTAMP_LTZ": _TIMES,
}


def misfits(
    table: str, place: str, declared: Mapping[str, SqlType], found: Mapping[str, str]
) -> Iterator[Fault]:
    """What is declared of a table's columns, and not so; `found` has the types as Spark writes them."""
    there = {name.lower(): kind for name, kind in found.items()}
    for name, kind in declared.items():
        has = there.get(name.lower())
        if has is None:
            what = f"{table} has no column `{name}`"
            yield Fault(place, None, name, what, suggestion(name, found, "columns"))
        elif not _fits(kind, has):
            what = (
                f"declared as {kind}, and {table} has {has.upper()}, which cannot be read so whole"
            )
            yield Fault(place, None, name, what, f"Declare {_nearest(has)}.")


def _fits(kind: SqlType, has: str) -> bool:
    if has == "string":
        return True
    decimal = _DECIMAL.fullmatch(has)
    if decimal and kind.name in {"INT", "BIGINT", "DECIMAL"}:
        return int(decimal[2]) <= (kind.scale or 0)
    return ("decimal" if decimal else has) in _READ_AS.get(kind.name, frozenset())


def _nearest(has: str) -> str:
    """The type of the condition language for a column of the table."""
    if has.startswith(("struct", "array", "map", "variant", "interval")):
        return "a plain column of the table, or judge a table that has one"
    names = {"timestamp_ntz": "TIMESTAMP(6)", "timestamp": "TIMESTAMP(6)", "binary": "STRING"}
    return names.get(has) or {"tinyint": "INT", "smallint": "INT"}.get(has) or has.upper()
