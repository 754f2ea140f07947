"""Decide which undeclared fields become columns of bronze, and with which types."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from headgate.core.sql.strict_json import OWN_NAMES
from headgate.declarations.columns import RESERVED_COLUMNS, Column
from headgate.declarations.types import BIGINT, BOOLEAN, DOUBLE, JSON, STRING, SqlType

# So many columns at most come by themselves; further fields stay in `_extra`.
MOST_COLUMNS = 100
LONGEST_NAME = 100
# The kinds of value that the counting of a batch tells apart.
TRUTH, WHOLE, LARGE, FRACTION, LONG_FRACTION, TEXT, NESTED = (
    "boolean whole large fraction long text nested".split()
)
_NAME = re.compile(r"\w(?:[\w -]*\w)?")
_MARK = "Not declared; read from the topic as "


@dataclass(frozen=True)
class Seen:
    """A field that is no column: the kinds of its values, its records, its place among the fields."""

    field: str
    kinds: frozenset[str]
    records: int
    place: int = 0


def new_columns(seen: Sequence[Seen], taken: Collection[str], room: int) -> tuple[Column, ...]:
    """Columns for the most frequent fields that can be one, in the order in which records have them."""
    used = {folded(name) for name in taken}
    chosen: list[Seen] = []
    for field in sorted(seen, key=lambda f: (-f.records, f.place, f.field)):
        if len(chosen) < room and type_of(field) and why_no_column(field.field, used) is None:
            used.add(folded(field.field))
            chosen.append(field)
    ordered = sorted(chosen, key=lambda f: (f.place, f.field))
    return tuple(evolved_column(f.field, kind) for f in ordered if (kind := type_of(f)))


def type_of(seen: Seen) -> SqlType | None:
    """The narrowest type that holds all its values without loss; None when all are null."""
    kinds = seen.kinds
    if not kinds:
        return None
    if kinds <= {WHOLE, LARGE}:
        return BIGINT
    if kinds <= {WHOLE, FRACTION}:
        return DOUBLE
    return {frozenset({TRUTH}): BOOLEAN, frozenset({TEXT}): STRING}.get(kinds, JSON)


def with_fractions(seen: Iterable[Seen], fractions: Collection[str]) -> tuple[Seen, ...]:
    """The same, where it is known of which fields some whole number is written as 2.0 or 2e0."""
    return tuple(
        replace(field, kinds=field.kinds | {FRACTION}) if field.field in fractions else field
        for field in seen
    )


def why_no_column(name: str, taken: Collection[str]) -> str | None:
    """Why a field of that name stays in `_extra`; `taken` are folded names."""
    if len(name) > LONGEST_NAME:
        return f"its name is longer than {LONGEST_NAME} characters"
    if not _NAME.fullmatch(name):
        return "its name has signs that a column's cannot have"
    if folded(name) in {*OWN_NAMES, *RESERVED_COLUMNS}:
        return "Headgate has a column of that name"
    if folded(name) in taken:
        return "a column has that name, or one that differs by case only"
    return None


def folded(name: str) -> str:
    """What two names have in common that Iceberg or a reader of it may take for one."""
    return unicodedata.normalize("NFKC", name).casefold()


def evolved_column(name: str, kind: SqlType) -> Column:
    """The column; its comment says, in the table too, that it came by itself and what it holds."""
    stored = STRING if kind == JSON else kind
    return Column(name, kind, stored, name, stored, comment=f"{_MARK}{kind}")


def evolved_columns(columns: Iterable[tuple[str, str]]) -> tuple[Column, ...]:
    """Of a table's columns, name and comment each, those that came by themselves."""
    kinds = {f"{_MARK}{kind}": kind for kind in (BOOLEAN, BIGINT, DOUBLE, STRING, JSON)}
    return tuple(evolved_column(name, kinds[words]) for name, words in columns if words in kinds)
