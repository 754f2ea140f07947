"""What of each filter stands on its topic: counted by origin, so that a record sent twice counts once."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from confluent_kafka import Message

    from headgate.engine.topics import TopicState
    from headgate.settings import Settings
    from headgate.store.ops import OpsStore

# More than this is not read for a certificate; the ledger's sums hold without it.
MOST = 500_000
QUIET_SECONDS = 20.0
HEADERS = ("headgate.filter", "headgate.source_id", "headgate.origin")
Origin = tuple[str, ...]


@dataclass(frozen=True)
class Arrived:
    """The records of a filter on its topic; `whole` when none of the topic's have expired."""

    records: int
    whole: bool = True

    def fits(self, sent: int) -> bool:
        return self.records == sent if self.whole else self.records <= sent


def arrived(settings: Settings, store: OpsStore, source: str) -> dict[str, Arrived]:
    """Per filter of this source, what is on all topics that it ever sent to."""
    from headgate.engine.topics import Topics

    topics = Topics(str(settings.need("bootstrap_servers")))
    states = [topics.describe(name) for name in store.routing.topics(source)]
    there = [state for state in states if state is not None]
    if sum(state.span for state in there) > MOST:
        return {}
    filters = {one.filter for one in store.routing.seen(source)}
    found: dict[str, set[Origin]] = {filter: set() for filter in filters}
    for state in there:
        for filter, *origin in _origins(topics.bootstrap, state):
            if filter in found:
                found[filter].add(tuple(origin))
    whole = len(there) == len(states) and not any(any(s.begin.values()) for s in there)
    return {filter: Arrived(len(origins), whole) for filter, origins in found.items()}


def _origins(bootstrap: str, state: TopicState) -> Iterator[Origin]:
    from confluent_kafka import Consumer, TopicPartition

    options: dict[str, str | int | float | bool] = {
        "bootstrap.servers": bootstrap,
        "group.id": "headgate-arrived",
        "enable.auto.commit": False,
        "log_level": 0,
    }
    left = {p: end for p, end in state.end.items() if end > state.begin[p]}
    consumer = Consumer(options)
    try:
        consumer.assign([TopicPartition(state.name, p, state.begin[p]) for p in left])
        quiet = time.monotonic() + QUIET_SECONDS
        while left and time.monotonic() < quiet:
            for message in consumer.consume(1000, timeout=0.5):
                if message.error():
                    continue
                quiet = time.monotonic() + QUIET_SECONDS
                partition, offset = cast("int", message.partition()), cast("int", message.offset())
                if offset + 1 >= left.get(partition, 0):
                    left.pop(partition, None)
                yield _origin(message)
    finally:
        consumer.close()


def _origin(message: Message) -> Origin:
    headers = dict(cast("Sequence[tuple[str, bytes | None]]", message.headers() or ()))
    return tuple((headers.get(name) or b"").decode() for name in HEADERS)
