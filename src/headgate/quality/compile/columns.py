"""Columns that rules may use: placeholders such as `{t1}` resolved, names looked up, types held against the lake.

With one source a column is known by its name, with two by alias and name. Positions of faults are those of
the text as written. `misfits` compares declared columns with those of an Iceberg table.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from headgate.conditions.ast import Column, Expr
from headgate.conditions.grammar import ExprError, ExprFault
from headgate.conditions.literals import spark_column
from headgate.conditions.parser import parse_condition
from headgate.conditions.spark_sql import BATCH_TIME
from headgate.declarations.errors import Refusal, suggestion
from headgate.declarations.types import STRING, SqlType
from headgate.errors import Fault
from headgate.quality.spec.rule_set import RuleSource, RuleTable

# Text in quotes is passed over: a brace there stands for itself.
_FOUND = re.compile(
    r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`[^`]*`|\{(?P<name>[^{}'"`]*)\}(?P<dot>\.)?""",
    re.DOTALL,
)
_SIDES = {"t1": "onprem", "t2": "cloud"}


@dataclass(frozen=True)
class Filled:
    """The text without placeholders; `places` are pairs of a position in it and as written."""

    text: str
    places: tuple[tuple[int, int], ...]

    def written(self, position: int | None) -> int | None:
        """Where in the text as written a fault is that was found here; both count from 1."""
        if position is None:
            return None
        at = bisect_right(self.places, (position - 1, len(self.text) * 2)) - 1
        here, there = self.places[at]
        following = self.places[at + 1][1] if at + 1 < len(self.places) else None
        found = there + position - 1 - here
        return (found if following is None else min(found, following - 1)) + 1


class Placeholders:
    """What the placeholders of one table stand for."""

    def __init__(self, table: RuleTable) -> None:
        self._sources = {
            name: source.alias
            for placeholder, side in _SIDES.items()
            for known, source in table.sides.items()
            if known == side
            for name in (placeholder, source.alias)
        }
        self._is_pair = table.is_pair
        self._values = {"batch_time": BATCH_TIME, "pk": self._column("t1", table.pk)}
        if table.hash is not None:
            self._values["hash_onprem"] = self._column("t1", table.hash.onprem_field)
            self._values["hash_cloud"] = self._column("t2", table.hash.cloud_field)

    @property
    def known(self) -> tuple[str, ...]:
        return (*self._sources, *self._values)

    def fill(self, text: str) -> Filled:
        """The text with every placeholder replaced; an ExprError has those that are unknown."""
        parts, places, faults = list[str](), [(0, 0)], list[ExprFault]()
        done = length = 0
        for match in _FOUND.finditer(text):
            if match["name"] is None:
                continue
            try:
                value = self._value(match)
            except ExprError as error:
                faults += error.faults
                continue
            before = text[done : match.start()]
            parts += [before, value]
            places.append((length + len(before), match.start()))
            length += len(before) + len(value)
            places.append((length, match.end()))
            done = match.end()
        if faults:
            raise ExprError(faults)
        return Filled("".join((*parts, text[done:])), tuple(places))

    def _value(self, match: re.Match[str]) -> str:
        name, position = match["name"].strip(), match.start() + 1
        if name in self._sources:
            if match["dot"]:
                return f"{self._sources[name]}." if self._is_pair else ""
            what = f"{{{name}}} is a source, not a value"
            raise ExprError.of(what, fix=f"Write {{{name}}}.column.", position=position)
        if name in self._values:
            return self._values[name] + (match["dot"] or "")
        shown = [f"{{{known}}}" for known in self.known]
        near = suggestion(f"{{{name}}}", shown, "placeholders")
        raise ExprError.of(f"there is no placeholder {{{name}}}", fix=near, position=position)

    def _column(self, placeholder: str, name: str) -> str:
        return spark_column(name, self._sources[placeholder] if self._is_pair else "")


class RuleColumns:
    """Reads the conditions and the names that the rules of one table are written with."""

    def __init__(self, table: RuleTable) -> None:
        self.table = table
        self.aliases = [source.alias for source in table.sources.values()] if table.is_pair else []
        self.types = dict[str, SqlType]()
        for source in table.sources.values():
            before = f"{source.alias}." if table.is_pair else ""
            self.types |= {before + name: kind for name, kind in _types(table, source).items()}
        self._placeholders = Placeholders(table)

    def condition(self, text: str) -> Expr:
        """The condition in `text`; positions of faults are those of the text as written."""
        filled = self._placeholders.fill(text)
        try:
            return parse_condition(filled.text, self.types, sources=self.aliases, batch_time=True)
        except ExprError as error:
            raise ExprError(
                [
                    ExprFault(fault.what, fault.why, fault.fix, filled.written(fault.position))
                    for fault in error.faults
                ]
            ) from None

    def column(self, written: str) -> Column:
        """The column that a typed rule names; a Refusal says which there are."""
        name = self._placeholders.fill(written).text.replace("`", "")
        keys = [name] if name in self.types else self._ending(name)
        if len(keys) > 1:
            both = " or ".join(keys)
            raise Refusal(f"`{written}` is a column of both sources", f"Write {both}.")
        if not keys:
            what = f"there is no column `{written}`"
            raise Refusal(what, suggestion(name, self.types, "columns"))
        alias, _, plain = keys[0].rpartition(".") if self.aliases else ("", "", keys[0])
        return Column(plain, self.types[keys[0]], alias)

    def _ending(self, name: str) -> list[str]:
        return [f"{alias}.{name}" for alias in self.aliases if f"{alias}.{name}" in self.types]


def _types(table: RuleTable, source: RuleSource) -> dict[str, SqlType]:
    """A key that is read by a path is a column as well."""
    return source.types if source.pk_path is None else {table.pk: STRING, **source.types}


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
