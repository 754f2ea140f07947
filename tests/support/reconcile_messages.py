"""Random messages of both topics, as records for Spark and as readings for the pure function."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random

from headgate.reconcile.state import DELETE, Reading, Side, State, merge_all, of_message

START = datetime(2024, 1, 1, 10, tzinfo=UTC)
TOPICS: dict[Side, str] = {"onprem": "topic1", "cloud": "topic2"}
GOOD = ("a" * 64, "b" * 64, "0123456789abcdef" * 4)
BAD = ("", "A" * 64, "a" * 63, "a" * 64 + "\n", "xyz")
RECORD = (
    "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP,"
    " headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
)
Row = tuple[bytes | None, bytes | None, str, int, int, datetime, None]


@dataclass(frozen=True)
class Message:
    """One message of one side; without a value it is a tombstone."""

    side: Side
    pk: str
    read_at: datetime
    partition: int
    offset: int
    version: datetime
    hash: str | None = None
    hash_version: int | None = None
    action: str | None = None
    tombstone: bool = False

    @property
    def state(self) -> State:
        return self.seen(self.read_at)

    def seen(self, at: datetime) -> State:
        """As a batch of that time sees it: what is stamped ahead of it was read then."""
        gone = self.tombstone
        action = DELETE if gone else (self.action or ("UPSERT" if self.side == "onprem" else None))
        reading = Reading(
            version=self.read_at if gone else self.version,
            partition=self.partition,
            offset=self.offset,
            hash=None if gone else self.hash,
            hash_version=None if gone else self.hash_version,
            action=action,
            read_at=min(self.read_at, at),
        )
        return of_message(self.side, self.pk, reading)

    @property
    def record(self) -> Row:
        key, topic = self.pk.encode(), TOPICS[self.side]
        value = None if self.tombstone else json.dumps(self._value, ensure_ascii=False).encode()
        return key, value, topic, self.partition, self.offset, self.read_at, None

    @property
    def _value(self) -> dict[str, object]:
        if self.side == "cloud":
            return {
                "pk": self.pk,
                "hash_cloud": self.hash,
                "hash_version": self.hash_version,
                "cloud_ts": stamp(self.version),
            }
        found: dict[str, object] = {"event_id": f"e-{self.offset}"}
        if self.action is not None:
            found["action"] = self.action
        return {
            **found,
            "hash_onprem": self.hash,
            "hash_version": self.hash_version,
            "partitionColumns": [{"type": "PK", "value": self.pk}],
            "event_ts": stamp(self.version),
        }


def stamp(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def random_messages(random: Random, keys: int, first: int = 0) -> list[Message]:
    """Some messages of each key, of every kind, from the same second to hours apart."""
    found: list[Message] = []
    for number in range(first, first + keys):
        pk = random.choice(("k-{}", "ключ {}", "k|{}\n", "'{}'")).format(number)
        for _ in range(random.choice((1, 2, 2, 2, 3, 4, 6))):
            found.append(_message(random, pk, len(found)))
    return found


def _message(random: Random, pk: str, offset: int) -> Message:
    side: Side = random.choice(("onprem", "cloud"))
    minutes = random.choice((0, 0, 1, 5, 9, 10, 11, 14, 15, 16, 59, 61, 200))
    version = START + timedelta(
        # Of some the clock runs ahead: they are from beyond the window in which they are read.
        seconds=random.choice((0, 0, 0, 0, 1, 1, 2, 2, 7_200)),
        microseconds=random.choice((0, 0, 1, 999, 1_000)),
    )
    return Message(
        side=side,
        pk=pk,
        read_at=START + timedelta(minutes=minutes, milliseconds=random.choice((0, 0, 1))),
        partition=random.choice((0, 0, 1)),
        offset=offset,
        version=version,
        hash=random.choice((*GOOD, *GOOD, GOOD[0], GOOD[0], None, random.choice(BAD))),
        hash_version=random.choice((None, 2, 2, 2, 1)),
        action=random.choice((None, "CREATE", "UPDATE", "UPSERT", "DELETE"))
        if side == "onprem"
        else None,
        tombstone=random.random() < 0.06,
    )


def states_of(messages: Iterable[Message], at: datetime) -> dict[str, State]:
    """The state of every key at the time of a batch, by merging all its messages."""
    parts: dict[str, list[State]] = {}
    for message in messages:
        parts.setdefault(message.pk, []).append(message.seen(at))
    return {pk: merge_all(states) for pk, states in parts.items()}


def records_of(messages: Sequence[Message], side: Side) -> list[Row]:
    return [message.record for message in messages if message.side == side]
