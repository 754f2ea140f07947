"""Dead letters on their topic, by the origin that each one carries in its headers."""

from __future__ import annotations

from headgate.core.kafka.engine_topics import Topics
from headgate.core.kafka.reader import Stretch, committed_records

ORIGIN = ("headgate.topic", "headgate.partition", "headgate.offset")

Origin = tuple[str, ...]


def origins_on_topic(bootstrap: str, topic: str) -> list[Origin]:
    """The origin of every dead letter on the topic; one that was sent twice is there twice."""
    state = Topics(bootstrap).describe(topic)
    if state is None:
        return []
    letters = committed_records(bootstrap, Stretch.whole(state), quiet=True)
    return [tuple(letter.headers.get(name, "") for name in ORIGIN) for letter in letters]
