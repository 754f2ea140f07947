"""Profile every column of a file: its types from topic to bronze, null and distinct counts, bounds.

Text columns whose values are all times get the one Java pattern that reads them. A file with columns
that no manifest can declare (odd names, bytes) is refused, all faults at once.
"""

# pyarrow ships no types, so what comes from it is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false

from __future__ import annotations

import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import orjson
import pyarrow as pa

from headgate.core.kafka.arrow_json import can_write, is_long_decimal, is_nested, written_as_text
from headgate.core.profiler.model import Bound, ColumnProfile, Kind, Profile, TimeText, plain_names
from headgate.core.profiler.rows import Database, Rows
from headgate.core.sql.strict_json import OWN_NAMES
from headgate.declarations.columns import RESERVED_COLUMNS, is_odd_name
from headgate.errors import OperationError

_DAY = r"\d{4}-\d{2}-\d{2}"
_ZONE = r"(Z|[+-]\d{2}:\d{2})"
_CLOCK = r"\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?"


def _sql(pattern: str) -> str:
    """The pattern's braces doubled: the fact is filled with the column's name."""
    return pattern.replace("{", "{{").replace("}", "}}")


_TIMES = f"regexp_full_match({{c}}, '{_sql(_DAY)}[T ]{_sql(_CLOCK)}{_sql(_ZONE)}?')"
_DAYS = f"regexp_full_match({{c}}, '{_sql(_DAY)}')"
# A text can look like a time and be none, such as 2024-02-30.
TEXT_FACTS: Mapping[str, str] = {
    "times": f"count_if({_TIMES} AND try_cast({{c}}[:10] AS DATE) IS NOT NULL"
    " AND try_cast({c}[12:13] AS INT) < 24 AND try_cast({c}[15:16] AS INT) < 60"
    " AND coalesce(try_cast(nullif({c}[18:19], '') AS INT), 0) < 60)",
    "days": f"count_if({_DAYS} AND try_cast({{c}} AS DATE) IS NOT NULL)",
    "zoned": f"count_if(regexp_matches({{c}}, ':.*{_sql(_ZONE)}$'))",
    "blank": "count_if({c}[11:11] = ' ')",
    "minutes": f"count_if(regexp_full_match({{c}}, '.{{{{11}}}}\\d\\d:\\d\\d{_sql(_ZONE)}?'))",
    "fraction": "count_if(contains({c}, '.'))",
}


def looks_timely(text: str) -> bool:
    """Whether it begins as a date does."""
    return bool(re.match(_DAY, text))


def text_time(column: ColumnProfile, found: Mapping[str, object], present: int) -> ColumnProfile:
    """The column as times or dates, when every text in it is one."""
    count = {name: int(str(found[name])) for name in TEXT_FACTS}
    if count["days"] == present:
        return replace(column, kind="date", bronze_type="DATE", time=TimeText(date_only=True))
    if count["times"] != present or count["zoned"] not in (0, present):
        return column
    time = TimeText(
        letter_t=count["blank"] < present,
        blank=count["blank"] > 0,
        seconds=count["minutes"] < present,
        without_seconds=count["minutes"] > 0,
        fraction=count["fraction"] > 0,
        zoned=count["zoned"] > 0,
    )
    name = "TIMESTAMP_LTZ" if time.zoned else "TIMESTAMP"
    return replace(
        column, kind="time", bronze_type=f"{name}({6 if time.fraction else 3})", time=time
    )


def written_time(column: ColumnProfile) -> TimeText:
    """How the generator writes the times of a column that has them as times."""
    if column.time is not None:
        return column.time
    if column.kind == "date":
        return TimeText(date_only=True)
    fine = any(unit in column.file_type for unit in ("[ms", "[us", "[ns"))
    return TimeText(fraction=fine, zoned="tz=" in column.file_type)


def time_pattern(times: Iterable[TimeText], *, nanoseconds: bool = False) -> str:
    """One Java pattern that reads all of them; what only some have stands in brackets."""
    known = list(times)
    clocks = [time for time in known if not time.date_only]
    if known and not clocks:
        return "yyyy-MM-dd"
    clock = f"{_separator(clocks)}{_clock(clocks, nanoseconds)}{_zone(clocks)}"
    return f"yyyy-MM-dd[{clock}]" if len(clocks) < len(known) else f"yyyy-MM-dd{clock}"


def _separator(clocks: list[TimeText]) -> str:
    letter, blank = not clocks or any(t.letter_t for t in clocks), any(t.blank for t in clocks)
    return "['T'][ ]" if letter and blank else " " if blank else "'T'"


def _clock(clocks: list[TimeText], nanoseconds: bool) -> str:
    if any(not t.seconds for t in clocks) and not any(t.seconds for t in clocks):
        return "HH:mm"
    fraction = "[.SSSSSSSSS]" if nanoseconds else "[.SSSSSS]"
    seconds = f":ss{fraction if any(t.fraction for t in clocks) else ''}"
    return f"HH:mm[{seconds}]" if any(t.without_seconds for t in clocks) else f"HH:mm{seconds}"


def _zone(clocks: list[TimeText]) -> str:
    zoned = [t.zoned for t in clocks]
    return "XXX" if zoned and all(zoned) else "[XXX]" if any(zoned) else ""


_TAKEN = frozenset(RESERVED_COLUMNS) | OWN_NAMES


def types_of(kind: pa.DataType) -> tuple[Kind, str, str]:
    """What it is, its type in the topic's JSON, and its type in bronze."""
    types = pa.types
    if types.is_dictionary(kind):
        return types_of(kind.value_type)
    if is_nested(kind):
        return "nested", "JSON", "STRING"
    if types.is_timestamp(kind):
        digits = 3 if kind.unit in ("s", "ms") else 6
        return "time", "STRING", f"{'TIMESTAMP_LTZ' if kind.tz else 'TIMESTAMP'}({digits})"
    if types.is_date(kind):
        return "date", "STRING", "DATE"
    if types.is_boolean(kind):
        return "boolean", "BOOLEAN", "BOOLEAN"
    if types.is_null(kind):
        return "nothing", "STRING", "STRING"
    if types.is_decimal(kind) and not is_long_decimal(kind):
        text = f"DECIMAL({max(kind.precision, kind.scale)}, {kind.scale})"
        return "decimal", text, text
    if types.is_floating(kind):
        return "real", "DOUBLE", "DOUBLE"
    return ("text", "STRING", "STRING") if written_as_text(kind) else _whole(kind)


def _whole(kind: pa.DataType) -> tuple[Kind, str, str]:
    if pa.types.is_uint64(kind):
        return "whole", "DECIMAL(20, 0)", "DECIMAL(20, 0)"
    text = "INT" if kind.bit_width < 32 or pa.types.is_int32(kind) else "BIGINT"
    return "whole", text, text


def require_columns(file: str, schema: pa.Schema) -> None:
    """Refuse a file with columns that no manifest can declare, all of them at once."""
    faults = [*_name_faults(schema.names), *_type_faults(schema)]
    if not schema.names:
        faults = ["it has no columns"]
    if not faults:
        return
    renamed = plain_names(schema.names, _TAKEN)
    raise OperationError(
        f"{file} cannot be declared as it is: {_count(len(faults))}",
        why="\n".join(faults),
        fix=_fix(file, schema, renamed),
    )


def _count(faults: int) -> str:
    return "one fault" if faults == 1 else f"{faults} faults"


def _name_faults(names: Sequence[str]) -> Iterator[str]:
    folded = Counter(name.lower() for name in names)
    for name in names:
        said = orjson.dumps(name).decode()
        if not name.strip():
            yield f"column {said} has no name"
        elif name != name.strip():
            yield f"column {said} has blanks around its name"
        elif is_odd_name(name):
            yield f"column {said} has a dot, a quote, `${{` or a control character in its name"
        elif name.lower() in _TAKEN:
            yield f"column {said} has a name that Headgate uses itself"
        elif folded[name.lower()] > 1:
            yield f"column {said} has another's name but for the case, which tables do not tell apart"


def _type_faults(schema: pa.Schema) -> Iterator[str]:
    for field in schema:
        if not can_write(field.type):
            yield f"column {orjson.dumps(field.name).decode()} is {field.type}: JSON has no bytes"


def _fix(file: str, schema: pa.Schema, renamed: tuple[str, ...]) -> str:
    """A command that writes the file anew; columns of bytes become hexadecimal text."""
    new = file.removesuffix(".parquet") + ".renamed.parquet"
    if all(can_write(field.type) for field in schema):
        steps = f"t.rename_columns({list(renamed)!r})"
        told = "rename the columns where the file is made, or in a copy of it:"
    else:
        kept = [i for i, field in enumerate(schema) if can_write(field.type)]
        steps = f"t.select({kept}).rename_columns({[renamed[i] for i in kept]!r})"
        told = (
            "write columns of bytes as text (hexadecimal, base64) where the file is made, "
            "or leave them out in a copy of it:"
        )
    return (
        f"{told}\n{_python()} -c \"import pyarrow.parquet as p; t = p.read_table('{file}'); "
        f"p.write_table({steps}, '{new}')\""
    )


def _python() -> str:
    """The interpreter that has pyarrow, as one types it here."""
    found, here = Path(sys.executable), Path.cwd()
    return str(found.relative_to(here) if found.is_relative_to(here) else found)


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
