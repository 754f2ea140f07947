"""What one row becomes on a topic: the sound message, or what a defect makes of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import orjson

from headgate.demo.quality.rule_feed import HASH, Change, RuleFeed
from headgate.demo.quality.rules_rows import Cell, Row, hash_of
from headgate.quality.spec.rule_set import Side

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
