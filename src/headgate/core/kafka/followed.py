"""What one query follows: a topic, or the two sides of a pair, told in the ledger's words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from headgate.core.kafka.engine_topics import Topics, TopicState
from headgate.core.ledger.store_model import PAIR_SOURCE, TOPIC_SOURCE, Range

# The only topic of a query has no side.
ALONE = ""
# The side whose topic is named first.
FIRST_SIDE = "onprem"


@dataclass(frozen=True)
class Followed:
    """The topics of one query by side; offsets are told by the keys that a range has."""

    topics: Mapping[str, TopicState]

    @classmethod
    def one(cls, topic: TopicState) -> Self:
        return cls({ALONE: topic})

    @property
    def name(self) -> str:
        """For a person."""
        return " and ".join(topic.name for topic in self.topics.values())

    @property
    def names(self) -> dict[str, str]:
        """The topics' names by side."""
        return {side: topic.name for side, topic in self.topics.items()}

    @property
    def source(self) -> str:
        prefix = TOPIC_SOURCE if ALONE in self.topics else PAIR_SOURCE
        return prefix + ",".join(topic.name for topic in self.topics.values())

    @property
    def topic_id(self) -> str:
        """Another one when any of the topics was deleted and made again."""
        return ",".join(topic.topic_id for topic in self.topics.values())

    @property
    def begin(self) -> dict[str, int]:
        return self._offsets({side: topic.begin for side, topic in self.topics.items()})

    @property
    def end(self) -> dict[str, int]:
        return self._offsets({side: topic.end for side, topic in self.topics.items()})

    def _offsets(self, found: Mapping[str, Mapping[int, int]]) -> dict[str, int]:
        return {key_of(side, p): n for side, own in found.items() for p, n in own.items()}

    def range(self, start: Mapping[str, int], end: Mapping[str, int]) -> Range:
        return Range(self.source, self.topic_id, start, end)

    def now(self, topics: Topics) -> Followed:
        """The same topics as they are now; each must be there."""
        return Followed({side: topics.found(topic.name) for side, topic in self.topics.items()})


def key_of(side: str, partition: int | str) -> str:
    """The key of a partition in a range."""
    return f"{side}:{partition}" if side else str(partition)


def own_offsets(offsets: Mapping[str, int], side: str) -> dict[str, int]:
    """One side's part of a range's offsets, by partition."""
    if not side:
        return dict(offsets)
    prefix = f"{side}:"
    return {k.removeprefix(prefix): n for k, n in offsets.items() if k.startswith(prefix)}


def topic_ranges(range_: Range) -> dict[str, Range]:
    """A range of offsets as ranges of single topics, by side."""
    if not range_.is_pair:
        return {ALONE: range_}
    names, ids = range_.source.removeprefix(PAIR_SOURCE).split(","), range_.source_id.split(",")
    sides = {key.partition(":")[0] for key in range_.end}
    return {
        side: Range(
            f"{TOPIC_SOURCE}{name}",
            id_,
            own_offsets(range_.start, side),
            own_offsets(range_.end, side),
        )
        for side, name, id_ in zip(_as_named(sides), names, ids, strict=True)
    }


def _as_named(sides: set[str]) -> list[str]:
    """In the order of the topics' names; a stored mapping has one of its own."""
    return sorted(sides, key=lambda side: (side != FIRST_SIDE, side))
