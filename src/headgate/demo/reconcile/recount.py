"""Verdicts computed again from the records on both topics, in plain Python without Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import cast

import orjson

from headgate.core.kafka.reader import Stretch, committed_records
from headgate.core.kafka.topics import Topics
from headgate.quality.spec.reconcile_checks import Limits
from headgate.reconcile.decision_table import Verdict, judge
from headgate.reconcile.state import (
    ACTIONS,
    DELETE,
    Reading,
    Side,
    State,
    merge,
    of_message,
)

Body = Mapping[str, object]


@dataclass(frozen=True)
class TopicRecord:
    """One record of a side's topic."""

    side: Side
    partition: int
    offset: int
    read_at: datetime
    key: bytes | None
    value: bytes | None


@dataclass(frozen=True)
class Recount:
    """What the records say: each key's state, and how often a record repeats an earlier one.

    `certain_duplicates` are those that repeat the newest version of their key within one window of
    the horizon. The job counts them however its batches are cut; a repetition of an older version,
    or of what stands in another window, it counts within one batch only.
    """

    states: Mapping[str, State]
    duplicates: Mapping[Side, int]
    certain_duplicates: Mapping[Side, int]

    def verdicts(self, at: datetime, limits: Limits) -> dict[str, Verdict]:
        return {pk: judge(state, at, limits) for pk, state in self.states.items()}


def recounted(records: Iterable[TopicRecord], horizon: timedelta) -> Recount:
    """Merged in the order in which they come: any order gives the same."""
    states: dict[str, State] = {}
    seen: Counter[tuple[Side, str, datetime, str | None]] = Counter()
    seen_in_window: Counter[tuple[Side, str, datetime, str | None, int]] = Counter()
    for record, pk, reading in _readings(records):
        state = of_message(record.side, pk, reading)
        states[pk] = merge(states[pk], state) if pk in states else state
        content = (record.side, pk, reading.version, reading.hash)
        seen[content] += 1
        seen_in_window[(*content, int(record.read_at.timestamp() // horizon.total_seconds()))] += 1
    duplicates: Counter[Side] = Counter()
    certain_duplicates: Counter[Side] = Counter()
    for (side, *_), count in seen.items():
        duplicates[side] += count - 1
    for (side, pk, version, _, _), count in seen_in_window.items():
        if _is_plainly_newest(states[pk], side, version):
            certain_duplicates[side] += count - 1
    return Recount(states, dict(duplicates), dict(certain_duplicates))


def _is_plainly_newest(state: State, side: Side, version: datetime) -> bool:
    """Whether it is the newest version of its side, and has said one thing only."""
    found = state.side(side)
    return found is not None and found.newest.version == version and len(found.told) == 1


def _readings(records: Iterable[TopicRecord]) -> Iterator[tuple[TopicRecord, str, Reading]]:
    for record in records:
        found = _reading(record)
        if found is not None:
            yield (record, *found)


def _reading(record: TopicRecord) -> tuple[str, Reading] | None:
    if record.value is None:
        gone = _at(record, record.read_at, None, None, DELETE)
        return (record.key.decode(), gone) if record.key else None
    try:
        body = cast("Body", orjson.loads(record.value))
    except orjson.JSONDecodeError:
        return None
    return _onprem(record, body) if record.side == "onprem" else _cloud(record, body)


def _onprem(record: TopicRecord, body: Body) -> tuple[str, Reading] | None:
    columns = cast("list[Body]", body.get("partitionColumns") or [])
    pk = next((c.get("value") for c in columns if c.get("type") == "PK"), None)
    action = body.get("action") or "UPSERT"
    if pk is None or action not in ACTIONS:
        return None
    moment = _moment(body["event_ts"])
    return str(pk), _at(record, moment, body.get("hash_onprem"), body, str(action))


def _cloud(record: TopicRecord, body: Body) -> tuple[str, Reading] | None:
    if body.get("pk") is None:
        return None
    moment = _moment(body["cloud_ts"])
    return str(body["pk"]), _at(record, moment, body.get("hash_cloud"), body, None)


def _at(
    record: TopicRecord, version: datetime, hashed: object, body: Body | None, action: str | None
) -> Reading:
    number = body.get("hash_version") if body else None
    return Reading(
        version=version,
        partition=record.partition,
        offset=record.offset,
        hash=None if hashed is None else str(hashed),
        hash_version=None if number is None else int(str(number)),
        action=action,
        read_at=record.read_at,
    )


def _moment(text: object) -> datetime:
    return datetime.fromisoformat(str(text)).astimezone(UTC)


SECONDS = 60.0


def topic_records(bootstrap: str, topics: Mapping[Side, str]) -> Iterator[TopicRecord]:
    """Everything that stands on the topics now."""
    for side, topic in topics.items():
        stretch = Stretch.whole(Topics(bootstrap).found(topic))
        for one in committed_records(bootstrap, stretch, SECONDS):
            read_at = datetime.fromtimestamp(one.millis / 1000, UTC)
            yield TopicRecord(side, one.partition, one.offset, read_at, one.key, one.value)
