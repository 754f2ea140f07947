"""Dead letters on their topic, by the origin that each one carries in its headers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from confluent_kafka import Consumer, Message, TopicPartition

from headgate.engine.topics import Topics
from headgate.errors import UnavailableError

ORIGIN = ("headgate.topic", "headgate.partition", "headgate.offset")
QUIET_SECONDS = 20.0

Origin = tuple[str, ...]


def origins_on_topic(bootstrap: str, topic: str) -> list[Origin]:
    """The origin of every dead letter on the topic; one that was sent twice is there twice."""
    state = Topics(bootstrap).describe(topic)
    if state is None or state.span == 0:
        return []
    options: dict[str, str | int | float | bool] = {
        "bootstrap.servers": bootstrap,
        "group.id": "headgate-letters",
        "enable.auto.commit": False,
        "log_level": 0,
    }
    consumer = Consumer(options)
    try:
        consumer.assign([TopicPartition(topic, p, begin) for p, begin in state.begin.items()])
        return _read(consumer, state.span, topic)
    finally:
        consumer.close()


def _read(consumer: Consumer, wanted: int, topic: str) -> list[Origin]:
    found: list[Origin] = []
    while len(found) < wanted:
        messages = consumer.consume(min(1000, wanted - len(found)), timeout=QUIET_SECONDS)
        if not messages:
            raise UnavailableError(f"{len(found)} of {wanted} dead letters of {topic} came")
        found += [_origin(message) for message in messages if not message.error()]
    return found


def _origin(message: Message) -> Origin:
    headers = dict(cast("Sequence[tuple[str, bytes | None]]", message.headers() or ()))
    return tuple((headers.get(name) or b"").decode() for name in ORIGIN)
