"""Ranges: the piece of a source that one batch reads, as one type for each kind of source.

`TopicRange` has offsets by partition, `PairRange` those of two topics by side, `TableRange` two snapshots of a
table (`BackfillRange`: of some dates only), `SweepRange` the counters of a sweep. Each has the four fields that the
ops store and the commits keep: `source`, `source_id`, `start` and `end`; `parse_range` makes the type from them.
`source_id` tells a recreated topic or table from the old one. Values only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import TypedDict, TypeVar

Offsets = Mapping[str, int]

_TOPIC, _PAIR, _TABLE = "kafka:", "pair:", "table:"
SNAPSHOT = "snapshot"
_FIRST_DATE, _LAST_DATE = "from", "to"
# Every sweep says until when it has looked; no other range of a table does.
_SWEPT_UNTIL = "until"
# The only topic of a query has no side; of a pair the on-prem topic is named first.
ALONE = ""
FIRST_SIDE = "onprem"


@dataclass(frozen=True)
class TopicRange:
    """Offsets of one topic by partition; `end` is exclusive, a partition that `start` lacks begins at 0."""

    topic: str
    source_id: str
    start: Offsets
    end: Offsets

    @property
    def source(self) -> str:
        return _TOPIC + self.topic


@dataclass(frozen=True)
class PairRange:
    """Offsets of the two topics of a pair, by side; the keys of `start` and `end` are `<side>:<partition>`."""

    sides: Mapping[str, TopicRange]

    @property
    def source(self) -> str:
        return _PAIR + ",".join(side.topic for side in self.sides.values())

    @property
    def source_id(self) -> str:
        return ",".join(side.source_id for side in self.sides.values())

    @property
    def start(self) -> Offsets:
        return join_sides({side: own.start for side, own in self.sides.items()})

    @property
    def end(self) -> Offsets:
        return join_sides({side: own.end for side, own in self.sides.items()})


@dataclass(frozen=True)
class TableRange:
    """The rows of a table between two of its snapshots; without a `first` one all rows of the last."""

    table: str
    source_id: str
    first: int | None
    last: int

    @property
    def source(self) -> str:
        return _TABLE + self.table

    @property
    def start(self) -> Offsets:
        return {} if self.first is None else {SNAPSHOT: self.first}

    @property
    def end(self) -> Offsets:
        return {SNAPSHOT: self.last}


@dataclass(frozen=True)
class BackfillRange(TableRange):
    """The rows of some dates in one snapshot of a table, both dates included."""

    first_date: date
    last_date: date

    @property
    def end(self) -> Offsets:
        dates = {
            _FIRST_DATE: _date_number(self.first_date),
            _LAST_DATE: _date_number(self.last_date),
        }
        return {SNAPSHOT: self.last, **dates}


@dataclass(frozen=True)
class SweepRange:
    """How far the sweeps of a table of states had come before and after one of them, in counters that rise."""

    table: str
    source_id: str
    start: Offsets
    end: Offsets

    @property
    def source(self) -> str:
        return _TABLE + self.table


class StoredRange(TypedDict):
    """The four fields that a range is stored as."""

    source: str
    source_id: str
    start: dict[str, int]
    end: dict[str, int]


OffsetRange = TopicRange | PairRange
Range = TopicRange | PairRange | TableRange | SweepRange
Kind = TypeVar("Kind", TopicRange, PairRange, TableRange, BackfillRange, SweepRange)


def parse_range(source: str, source_id: str, start: Offsets, end: Offsets) -> Range:
    """The range that is stored as these four fields."""
    kind, _, name = source.partition(":")
    if kind == _TOPIC[:-1]:
        return TopicRange(name, source_id, start, end)
    if kind == _PAIR[:-1]:
        return PairRange(_parse_sides(name.split(","), source_id.split(","), start, end))
    if kind != _TABLE[:-1]:
        raise ValueError(f"{source} is no source of a batch")
    if _SWEPT_UNTIL in end:
        return SweepRange(name, source_id, start, end)
    if _FIRST_DATE in end:
        dates = (_parse_date(end[_FIRST_DATE]), _parse_date(end[_LAST_DATE]))
        return BackfillRange(name, source_id, None, end[SNAPSHOT], *dates)
    return TableRange(name, source_id, start.get(SNAPSHOT), end[SNAPSHOT])


def stored_range(range_: Range) -> StoredRange:
    """The four fields that a range is stored as."""
    return {
        "source": range_.source,
        "source_id": range_.source_id,
        "start": dict(range_.start),
        "end": dict(range_.end),
    }


def expect_range(range_: Range, kind: type[Kind]) -> Kind:
    """The range as the one kind that a job reads."""
    if not isinstance(range_, kind):
        raise TypeError(f"{range_.source}: {kind.__name__} expected, not {type(range_).__name__}")
    return range_


def is_rebuild(range_: Range) -> bool:
    """Whether the batch reads its table from the beginning: what was settled before no longer counts."""
    return isinstance(range_, TableRange) and range_.first is None


def topic_ranges(range_: Range | None) -> Mapping[str, TopicRange]:
    """The ranges of single topics by side; none of a table, or where nothing is settled."""
    if isinstance(range_, TopicRange):
        return {ALONE: range_}
    return range_.sides if isinstance(range_, PairRange) else {}


def side_key(side: str, partition: int | str) -> str:
    """The key of a partition among the offsets of all sides: `0`, or `onprem:0`."""
    return f"{side}:{partition}" if side else str(partition)


def join_sides(sides: Mapping[str, Offsets]) -> dict[str, int]:
    """The offsets of all sides in one mapping."""
    return {side_key(side, p): n for side, own in sides.items() for p, n in own.items()}


def side_offsets(offsets: Offsets, side: str) -> dict[str, int]:
    """One side's part of the offsets of all sides, by partition."""
    if not side:
        return dict(offsets)
    prefix = f"{side}:"
    return {k.removeprefix(prefix): n for k, n in offsets.items() if k.startswith(prefix)}


def _parse_sides(
    topics: list[str], ids: list[str], start: Offsets, end: Offsets
) -> dict[str, TopicRange]:
    """A stored mapping has an order of its own, so the sides are ordered as their topics are named."""
    sides = {key.partition(":")[0] for key in end}
    in_order = sorted(sides, key=lambda side: (side != FIRST_SIDE, side))
    return {
        side: TopicRange(topic, id_, side_offsets(start, side), side_offsets(end, side))
        for side, topic, id_ in zip(in_order, topics, ids, strict=True)
    }


def _date_number(day: date) -> int:
    return day.year * 10_000 + day.month * 100 + day.day


def _parse_date(number: int) -> date:
    return date(number // 10_000, number // 100 % 100, number % 100)
