"""Sound rows of a feed, drawn from a seed, and the messages a row becomes: the sound one, or what a defect makes of it."""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

import orjson

from headgate.demo.quality.declaration import HASH, Change, RuleFeed
from headgate.pipeline.generator.declaration import Between, Sample, SampleColumn
from headgate.pipeline.generator.sample import SampleMaker
from headgate.quality.spec.rule_set import Side

# pyarrow ships no types, so what comes from it is unknown to the checker.


Cell: TypeAlias = bool | int | float | str | datetime | None
Row: TypeAlias = dict[str, Cell]


def sample_of(feed: RuleFeed, start: datetime, sample: Sample | None = None) -> Sample:
    """The feed's rows as a sample, nothing planted, its event times from `start` on."""
    span = Between(_zoneless(start), _zoneless(start + feed.event_time.span))
    timed = SampleColumn(name=feed.event_time.field, type="TIMESTAMP(6)", time=span)
    columns = {column.name: column for column in sample.columns} if sample else {}
    columns |= {column.name: column for column in (*feed.columns, timed)}
    return Sample(columns=tuple(columns.values()), missing=sample.missing if sample else ())


class FeedRows:
    """The rows of one feed under one seed: same seed and start, same rows."""

    def __init__(self, feed: RuleFeed, sample: Sample, seed: int) -> None:
        self._feed, self._seed = feed, seed
        self._maker = SampleMaker(sample, seed)

    def blocks(self, rows: int) -> Iterator[list[Row]]:
        """All rows in order, some at a time."""
        number = 0
        for block in self._maker.blocks(rows):
            made: list[Row] = block.batch.to_pylist()
            yield [self._whole(row, number + index) for index, row in enumerate(made)]
            number += len(made)

    def _whole(self, row: Row, number: int) -> Row:
        key, time = self._feed.key, self._feed.event_time.field
        moment = row[time]
        if isinstance(moment, datetime):
            row[time] = moment.replace(tzinfo=UTC)
        if key:
            row = {key.field: f"{key.prefix}{self._seed}-{number:07d}", **row}
        if self._feed.hash_of:
            row[HASH] = hash_of([row[name] for name in self._feed.hash_of])
        return row


def hash_of(values: Sequence[object]) -> str:
    """64 lower-case hexadecimal digits, the same for both sides of a row."""
    return hashlib.sha256(orjson.dumps(list(values))).hexdigest()


def _zoneless(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(tzinfo=None)


OLDER = timedelta(seconds=1)
UNCHANGED = Change()
# A value cut off in the middle, as a producer that died leaves it.
KEPT_OF_GARBLED = 0.6


@dataclass(frozen=True)
class Message:
    """One record; a None value is a tombstone. `again` ones go after all others."""

    key: bytes | None
    value: bytes | None
    again: bool = False


class SideMessages:
    """Writes the messages of one side of a feed."""

    def __init__(self, feed: RuleFeed, side: Side, pk: str) -> None:
        self._key = feed.key.field if feed.key else pk
        self._time = feed.event_time.field
        self._zoned = feed.dataset is None
        self._shown: Mapping[str, str] | None = feed.sides.get(side)

    def of(self, row: Row, change: Change | None) -> Iterable[Message]:
        """The messages of this row, oldest first."""
        change = change or UNCHANGED
        if change.drop:
            return
        key = self._key_of(row)
        if change.tombstone:
            yield Message(key, None)
            return
        if change.older_first:
            yield Message(key, self._text(self._fields(self._older(row), UNCHANGED)))
        value = self._text(self._fields(row, change))
        if change.garble:
            value = value[: int(len(value) * KEPT_OF_GARBLED)]
        yield Message(key, value)
        if change.repeat:
            yield Message(key, value, again=True)

    def _key_of(self, row: Row) -> bytes | None:
        value = row.get(self._key)
        return None if value is None else str(value).encode()

    def _older(self, row: Row) -> Row:
        older = {**row, self._time: _moved(row[self._time], OLDER)}
        return {**older, HASH: hash_of([row[HASH], "older"])} if HASH in row else older

    def _fields(self, row: Row, change: Change) -> Row:
        late = change.late
        changed = {name: _moved(value, late) for name, value in row.items()} if late else dict(row)
        if change.rehash:
            changed[HASH] = hash_of([row[HASH], "other"])
        shown = self._shown or {name: name for name in row}
        fields = {name: changed[column] for name, column in shown.items()}
        fields |= {name: _negated(fields[name]) for name in change.negate}
        fields |= {**change.set, **change.add}
        return {name: value for name, value in fields.items() if name not in change.remove}

    def _text(self, fields: Row) -> bytes:
        return orjson.dumps({name: self._written(value) for name, value in fields.items()})

    def _written(self, value: Cell) -> Cell:
        if not isinstance(value, datetime):
            return value
        plain = value.replace(tzinfo=None)
        return f"{plain.isoformat(timespec='milliseconds')}Z" if self._zoned else plain.isoformat()


def _moved(moment: Cell, by: timedelta) -> Cell:
    return moment - by if isinstance(moment, datetime) else moment


def _negated(value: Cell) -> Cell:
    return -value if isinstance(value, (int, float)) else value
