"""Reads the last rows of a rule table: from its topics without Spark, or from a Parquet or JSONL file."""

# pyarrow ships no types, so what comes from it is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from headgate.core.kafka.engine_topics import Topics
from headgate.core.kafka.reader import Found, Stretch, committed_records
from headgate.errors import OperationError, UsageError
from headgate.quality.diff.rule_diff_rows import Fields, Given, with_key
from headgate.quality.spec.rule_set import RuleSource, RuleTable

SECONDS = 60.0


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
