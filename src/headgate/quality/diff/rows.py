"""Rows to compare revisions by: read from topics without Spark or from a Parquet or JSONL file, typed and masked.

A record that cannot be read is counted and never quoted.
"""

# pyarrow ships no types, so what comes from it is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TypeAlias, cast

from headgate.conditions.evaluator.values import Value
from headgate.core.kafka.reader import Found, Stretch, committed_records
from headgate.core.kafka.topics import Topics
from headgate.declarations.errors import Refusal
from headgate.declarations.types import SqlType
from headgate.errors import OperationError, UsageError
from headgate.quality.compile.resolve import JudgedTable
from headgate.quality.compile.typed_rules import EXTRA, MISSING
from headgate.quality.evaluator import typed_value
from headgate.quality.record_parser import Step, read_path
from headgate.quality.report.model import MASK
from headgate.quality.report.rows import (
    is_hidden,
    masked_values,
    sensitive_columns,
    short,
)
from headgate.quality.spec.rule_set import RuleSource, RuleTable

SECONDS = 60.0
# No column can be called so.
UNDECLARED = "(not declared)"
Fields: TypeAlias = Mapping[str, object]


@dataclass(frozen=True)
class Rows:
    """The rows, oldest first, how many records were no JSON object, and what to know of them."""

    rows: tuple[Given, ...]
    unreadable: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Record:
    """A record that was read; one without a value is a delete and is no row."""

    side: str
    order: tuple[int, int, int]
    fields: Fields | None


def rows_of_file(file: Path, table: RuleTable, last: int) -> Rows:
    """The last rows of the file; of a pair each has a mapping `onprem` and `cloud`."""
    if file.suffix == ".parquet":
        rows = _parquet(file, last)
    elif file.suffix in (".jsonl", ".ndjson", ".json"):
        rows = list(deque(_lines(file), last))
    else:
        raise UsageError(f"{file} is neither Parquet nor JSON", fix="use .parquet or .jsonl")
    given = [_given(table, f"{file.name}:{at}", fields) for at, fields in rows]
    return Rows(tuple(one for one in given if one), sum(one is None for one in given))


def _given(table: RuleTable, place: str, fields: Fields | None) -> Given | None:
    if fields is None:
        return None
    if not table.is_pair:
        side, source = next(iter(table.sources.items()))
        return Given(place, {side: with_key(table, source, fields)})
    sides = {
        str(side): with_key(table, source, cast("Fields", fields[side]))
        for side, source in table.sources.items()
        if isinstance(fields.get(side), dict)
    }
    return Given(place, sides) if sides else None


def _parquet(file: Path, last: int) -> list[tuple[int, Fields]]:
    import pyarrow.parquet as pq

    kept: deque[Fields] = deque(maxlen=last)
    with pq.ParquetFile(file) as parquet:
        total = parquet.metadata.num_rows
        for group in _last_groups(parquet.metadata, last):
            table = parquet.read_row_group(group)
            kept.extend(table.slice(max(0, table.num_rows - last)).to_pylist())
    return list(enumerate(kept, total - len(kept) + 1))


def _last_groups(metadata: object, last: int) -> range:
    """As many row groups from the end as hold so many rows."""
    sizes = [metadata.row_group(at).num_rows for at in range(metadata.num_row_groups)]  # pyright: ignore[reportAttributeAccessIssue]
    first, rows = len(sizes), 0
    while first and rows < last:
        first -= 1
        rows += sizes[first]
    return range(first, len(sizes))


def _lines(file: Path) -> Iterator[tuple[int, Fields | None]]:
    with file.open("rb") as stream:
        for at, line in enumerate(stream, 1):
            if line.strip():
                yield at, _object(line)


def _object(text: bytes) -> Fields | None:
    try:
        found = cast("object", json.loads(text))
    except (ValueError, RecursionError):
        return None
    return cast("Fields", found) if isinstance(found, dict) else None


def rows_of_topics(bootstrap: str, table: RuleTable, topics: Mapping[str, str], last: int) -> Rows:
    """The last rows of each source's topic; of a pair the newest of each key, joined."""
    records: list[_Record] = []
    unreadable = 0
    for side, source in table.sources.items():
        if side not in topics:
            raise OperationError(
                f"{table.name} reads the table {source.iceberg}, not a topic",
                why="only topics and files can be read without Spark",
                fix="give rows with --rows FILE",
            )
        found = _newest(bootstrap, topics[side], last)
        read = [_record(table, side, source, one) for one in found]
        unreadable += sum(one is None for one in read)
        records += [one for one in read if one is not None and one.fields is not None]
    if not table.is_pair:
        return Rows(tuple(_single(one) for one in records), unreadable)
    note = f"A partner that is not among the last {last:,} records of its topic counts as missing."
    return Rows(_pairs(table, records), unreadable, (note,))


def _newest(bootstrap: str, topic: str, last: int) -> Sequence[Found]:
    """The last records of all partitions together, by their time."""
    state = Topics(bootstrap).found(topic)
    begin = {p: max(state.begin[p], end - last) for p, end in state.end.items()}
    found = list(committed_records(bootstrap, Stretch(topic, begin, state.end), SECONDS))
    return sorted(found, key=_order)[-last:] if last else []


def _order(found: Found) -> tuple[int, int, int]:
    return found.millis, found.partition, found.offset


def _record(table: RuleTable, side: str, source: RuleSource, found: Found) -> _Record | None:
    if found.value is None:
        return _Record(side, _order(found), None)
    fields = _object(found.value)
    if fields is None:
        return None
    return _Record(side, _order(found), with_key(table, source, fields))


def _single(record: _Record) -> Given:
    return Given(f"{record.order[1]}@{record.order[2]}", {record.side: record.fields or {}})


def _pairs(table: RuleTable, records: Iterable[_Record]) -> tuple[Given, ...]:
    """By key the newest of each side: by event time, then by where it stands on the topic."""
    newest: dict[str, dict[str, _Record]] = {}
    for record in records:
        fields = record.fields or {}
        key = fields.get(table.pk)
        if key is None:
            continue
        sides = newest.setdefault(str(key), {})
        before = sides.get(record.side)
        if before is None or _version(table, before) <= _version(table, record):
            sides[record.side] = record
    return tuple(
        Given(key, {side: record.fields or {} for side, record in sides.items()})
        for key, sides in newest.items()
    )


def _version(table: RuleTable, record: _Record) -> tuple[str, int, int]:
    source = next(s for side, s in table.sources.items() if side == record.side)
    time = (record.fields or {}).get(source.event_time or "")
    return (_instant(time), *record.order[1:])


def _instant(value: object) -> str:
    """Times in one form, so that they sort as they are."""
    try:
        found = datetime.fromisoformat(str(value))
    except ValueError:
        return ""
    zoned = found if found.tzinfo else found.replace(tzinfo=UTC)
    return f"{zoned.timestamp():020.6f}"


@dataclass(frozen=True)
class Given:
    """A row by source (`onprem`, `cloud`), as JSON or Parquet has it; `place` is where it stood."""

    place: str
    sides: Mapping[str, Fields] = field(default_factory=dict[str, Fields])


def with_key(table: RuleTable, source: RuleSource, fields: Fields) -> Fields:
    """The row with its key as a field, where the key stands deeper in the record."""
    if source.pk_path is None or table.pk in fields:
        return fields
    found: list[object] = [fields]
    for step in read_path(source.pk_path):
        found = [item for one in found for item in _taken(one, step)]
    texts = [str(one) for one in found if one is not None]
    several = json.dumps(texts, separators=(",", ":"), ensure_ascii=False)
    return {**fields, table.pk: None if not texts else texts[0] if len(texts) == 1 else several}


def _taken(value: object, step: Step) -> list[object]:
    inner = cast("Fields", value).get(step.name) if isinstance(value, dict) else None
    if not step.is_list:
        return [inner]
    items = cast("list[object]", inner) if isinstance(inner, list) else []
    if step.index is not None:
        return items[step.index : step.index + 1]
    maps = [cast("Fields", item) for item in items if isinstance(item, dict)]
    return [item for item in maps if item.get(step.field or "") == step.text]


def typed_row(judged: JudgedTable, given: Given) -> dict[str, Value] | None:
    """The row under the keys that conditions use; None when a value does not fit its column."""
    found: dict[str, Value] = {}
    for side, source in judged.table.sources.items():
        fields = given.sides.get(side)
        if fields is None:
            continue
        before = f"{source.alias}." if judged.table.is_pair else ""
        try:
            found |= _side(judged, source, fields, before)
        except Refusal:
            return None
    return found


def _side(judged: JudgedTable, source: RuleSource, fields: Fields, before: str) -> dict[str, Value]:
    types = {key: kind for key, kind in judged.types.items() if key.startswith(before)}
    found = {key: _value(fields.get(key.removeprefix(before)), kind) for key, kind in types.items()}
    absent = [name for name in source.columns if name not in fields]
    others = [name for name in fields if before + name not in types]
    names = {before + MISSING: absent, before + EXTRA: others}
    return found | {key: ", ".join(listed) for key, listed in names.items() if listed}


def _value(value: object, kind: SqlType) -> Value:
    """As the topic's reader takes it: any JSON is text where text is declared."""
    if isinstance(value, datetime):
        return _time(value, kind)
    if kind.name in ("STRING", "JSON") and value is not None and not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False, default=str, separators=(",", ":"))
    if isinstance(value, date):
        return typed_value(value.isoformat(), kind)
    if isinstance(value, Decimal) and kind.name in ("DOUBLE", "FLOAT"):
        return float(value)
    if isinstance(value, str) and kind.is_time:
        return _text_time(value, kind)
    if kind.name == "JSON":
        return cast("str | None", value)
    return typed_value(value, kind)


def _text_time(value: str, kind: SqlType) -> Value:
    """Event times are times in UTC, with or without a zone written behind them."""
    try:
        return _time(datetime.fromisoformat(value.strip()), kind)
    except ValueError:
        raise Refusal("it is no time", "Write it as 2024-01-31T12:30:00.") from None


def _time(value: datetime, kind: SqlType) -> Value:
    utc = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    return utc.replace(tzinfo=None) if kind.name == "TIMESTAMP" else utc


def shown_key(judged: JudgedTable, given: Given, hidden: frozenset[str]) -> str:
    pk = judged.table.pk
    if is_hidden(pk, hidden):
        return MASK
    found = [fields[pk] for fields in given.sides.values() if fields.get(pk) is not None]
    return short(str(found[0])) if found else given.place


def hidden_fields(table: RuleTable) -> frozenset[str]:
    """What a person may not see: sensitive columns, and the field that a sensitive key is taken from."""
    hidden = sensitive_columns(table)
    if table.pk not in hidden:
        return hidden
    paths = [source.pk_path for source in table.sources.values() if source.pk_path]
    return hidden | {read_path(path)[0].name for path in paths}


def declared_fields(*tables: RuleTable) -> frozenset[tuple[str, str]]:
    """The columns of any of the revisions, by source."""
    return frozenset(
        (side, name)
        for table in tables
        for side, source in table.sources.items()
        for name in (table.pk, *source.columns)
    )


def masked_row(
    given: Given,
    declared: frozenset[tuple[str, str]],
    hidden: frozenset[str],
    first: frozenset[str] = frozenset(),
) -> dict[str, str]:
    """The declared columns, some of them first; of other fields, which nobody could mask, the names."""
    many = len(given.sides) > 1
    named = {
        (side, name): (f"{side}.{name}" if many else name, value)
        for wanted in (True, False)
        for side, fields in given.sides.items()
        for name, value in fields.items()
        if (name in first) is wanted
    }
    shown = dict(found for place, found in named.items() if place in declared)
    others = [found[0] for place, found in named.items() if place not in declared]
    told = {UNDECLARED: short(", ".join(others))} if others else {}
    return masked_values(json.dumps(shown, default=str), hidden) | told
