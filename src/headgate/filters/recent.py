"""The last records of a topic, read backwards from its end: no group, nothing committed."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from headgate.core.kafka.engine_topics import Topics
from headgate.core.kafka.reader import Stretch, committed_records
from headgate.filters.store.routing_model import TopicEnd

SECONDS = 20.0


@dataclass(frozen=True)
class Record:
    """One record where it stands; `at` is the broker's time in milliseconds, or negative."""

    partition: int
    offset: int
    at: int
    value: bytes | None

    @property
    def time(self) -> datetime | None:
        return datetime.fromtimestamp(self.at / 1000, UTC) if self.at >= 0 else None


@dataclass(frozen=True)
class Span:
    """Offsets by partition, from (inclusive) to (exclusive)."""

    ranges: Mapping[int, tuple[int, int]]


class Recent(Protocol):
    """Where the last records of a topic can be read."""

    def end(self, topic: str) -> TopicEnd: ...

    def span(self, topic: str, last: int) -> Span: ...

    def records(self, topic: str, span: Span) -> Generator[Record]: ...


class KafkaRecent:
    """From a broker; it ends after the span or with UnavailableError after some seconds."""

    def __init__(self, bootstrap: str, seconds: float = SECONDS) -> None:
        self._bootstrap, self._seconds = bootstrap, seconds

    def end(self, topic: str) -> TopicEnd:
        """Where the topic ends now; one that is not there yet has no offsets."""
        topics = Topics(self._bootstrap)
        topics.need()
        state = topics.describe(topic)
        if state is None:
            return TopicEnd(topic, "", {})
        return TopicEnd(topic, state.topic_id, {str(p): end for p, end in state.end.items()})

    def span(self, topic: str, last: int) -> Span:
        """The last offsets of all partitions, as evenly as they have records."""
        state = Topics(self._bootstrap).found(topic)
        held = {p: state.end[p] - state.begin[p] for p in state.end}
        shares = shared_out(held, last)
        return Span({p: (state.end[p] - shares[p], state.end[p]) for p in held if shares[p]})

    def records(self, topic: str, span: Span) -> Generator[Record]:
        begin = {partition: first for partition, (first, _) in span.ranges.items()}
        end = {partition: last for partition, (_, last) in span.ranges.items()}
        stretch = Stretch(topic, begin, end)
        # What expired meanwhile is left out: a preview looks at what is there.
        for found in committed_records(self._bootstrap, stretch, self._seconds, expired="earliest"):
            yield Record(found.partition, found.offset, found.millis, found.value)


def shared_out(held: Mapping[int, int], last: int) -> dict[int, int]:
    """How many each partition gives: evenly, and more where others have too few."""
    shares, left = dict.fromkeys(held, 0), last
    for place, partition in enumerate(sorted(held, key=lambda p: held[p])):
        shares[partition] = min(held[partition], -(-left // (len(held) - place)))
        left -= shares[partition]
    return shares
