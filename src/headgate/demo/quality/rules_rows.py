"""The sound rows of a feed: drawn as a sample is, with a key, an event time and a hash."""

# pyarrow ships no types, so what comes from it is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TypeAlias

import orjson

from headgate.demo.quality.rule_feed import HASH, RuleFeed
from headgate.pipeline.generator.feeds_sample import SampleMaker
from headgate.pipeline.generator.spec_sample import Between, Sample, SampleColumn

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
