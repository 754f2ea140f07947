"""One look at the values of every column: how many are absent, how many differ, from where to where."""

# pyarrow ships no types, so what comes from it is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import pyarrow as pa

from headgate.core.profiler.database import Database
from headgate.core.profiler.kinds import types_of
from headgate.core.profiler.profile_model import Bound, ColumnProfile, Kind, Profile
from headgate.core.profiler.profile_rows import Rows
from headgate.core.profiler.texts import TEXT_FACTS, looks_timely, text_time

FEW_VALUES = 20
FIRST_TEXTS = 100
# Up to here different values are counted, beyond it their number is estimated.
EXACT_VALUES, EXACT_COLUMNS = 20_000_000, 60
Advance = Callable[[int], None]


def scan(database: Database, rows: Rows, schema: pa.Schema, advance: Advance) -> Profile:
    """The profile of the file's columns, as the rows looked at show them."""
    exact = rows.limit * len(schema) <= EXACT_VALUES and len(schema) <= EXACT_COLUMNS
    asked = [_facts(types_of(field.type)[0], field.type, exact) for field in schema]
    timely = _timely(
        rows, [at for at, facts in enumerate(asked) if TEXT_FACTS.keys() <= facts.keys()]
    )
    facts = [
        {k: v for k, v in f.items() if at in timely or k not in TEXT_FACTS}
        for at, f in enumerate(asked)
    ]
    sql = [
        fact.format(c=f"c{at}") for at, of_column in enumerate(facts) for fact in of_column.values()
    ]
    found = iter(database.one_row(rows.reader(range(len(facts)), advance), sql))
    columns = [
        _column(field, {name: next(found) for name in of_column}, rows.limit)
        for field, of_column in zip(schema, facts, strict=True)
    ]
    return Profile(str(rows.file), rows.looked, _with_values(database, rows, columns), exact)


def _timely(rows: Rows, texts: Sequence[int]) -> set[int]:
    """Columns of text that may hold times: in the others the first texts already do not."""
    if not texts:
        return set()
    head = (
        replace(rows, limit=min(rows.limit, FIRST_TEXTS)).reader(texts, lambda _: None).read_all()
    )
    return {
        at
        for at, column in zip(texts, head.columns, strict=True)
        if all(value is None or looks_timely(value) for value in column.to_pylist())
    }


def _facts(kind: Kind, arrow: pa.DataType, exact: bool) -> dict[str, str]:
    """What is asked of a column, by name."""
    facts = {"present": "count({c})"}
    if kind in ("nested", "nothing"):
        return facts
    facts |= {"distinct": "count(DISTINCT {c})" if exact else "approx_count_distinct({c})"}
    if kind == "real":
        finite = "FILTER (isfinite({c}))"
        return facts | {
            "low": f"min({{c}}) {finite}",
            "high": f"max({{c}}) {finite}",
            "beyond": "count_if(NOT isfinite({c}))",
            "broken": "count_if(isfinite({c}) AND {c} <> floor({c}))",
        }
    if kind in ("time", "date"):
        facts |= {"low": "min({c})::VARCHAR", "high": "max({c})::VARCHAR"}
        if pa.types.is_timestamp(arrow) and arrow.unit == "ns":
            facts |= {"beyond": "count_if(epoch_ns({c}) % 1000 <> 0)"}
        return facts
    facts |= {"low": "min({c})", "high": "max({c})"}
    return {**facts, **TEXT_FACTS} if kind == "text" else facts


def _column(
    field: pa.Field, found: dict[str, Any], rows: int
) -> ColumnProfile:  # DuckDB gives any value
    kind, kafka, bronze = types_of(field.type)
    present = cast("int", found["present"])
    made = ColumnProfile(
        name=field.name,
        file_type=str(field.type),
        kind=kind,
        kafka_type=kafka,
        bronze_type=bronze,
        nulls=rows - present,
        distinct=min(present, cast("int", found.get("distinct", 0))),
        low=_bound(found.get("low")),
        high=_bound(found.get("high")),
        beyond=cast("int", found.get("beyond") or 0),
        whole=kind == "real" and found.get("broken") == 0 and found.get("low") is not None,
    )
    if kind == "time" and made.beyond:
        return replace(made, bronze_type="STRING", kind="time")
    return text_time(made, found, present) if "times" in found and present else made


def _bound(value: object) -> Bound | None:
    return None if isinstance(value, float) and math.isnan(value) else cast("Bound | None", value)


def _with_values(
    database: Database, rows: Rows, columns: Sequence[ColumnProfile]
) -> tuple[ColumnProfile, ...]:
    """The values themselves where they are few; then their number is exact too."""
    few = [
        at
        for at, column in enumerate(columns)
        if column.kind in ("text", "whole", "boolean") and 0 < column.distinct <= FEW_VALUES
    ]
    if not few:
        return tuple(columns)
    asked = [f"list_sort(map_keys(histogram(c{at})))" for at in few]
    lists = database.one_row(rows.reader(few, lambda _: None), asked)
    known = {at: tuple(cast("list[Bound]", v)) for at, v in zip(few, lists, strict=True)}
    return tuple(
        replace(column, values=known[at], distinct=len(known[at])) if at in known else column
        for at, column in enumerate(columns)
    )
