"""The topics that filters send to: made where they are absent, never altered, and how much they take."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence

from headgate.core.kafka.engine_topics import Topics, TopicSpec
from headgate.declarations.topic_names import reason_against_events
from headgate.errors import HeadgateError, UnavailableError
from headgate.filters.store.routing_model import Member, Wanted

PARTITIONS, RETENTION_DAYS = 3, 7
# A limit that is changed is noticed within this time.
FRESH_SECONDS = 60.0


class OutputTopics:
    """Looks at the broker as rarely as it may."""

    def __init__(self, topics: Topics, clock: Callable[[], float] = time.monotonic) -> None:
        self._topics, self._clock = topics, clock
        self._largest: dict[str, int] = {}
        self._looked = -FRESH_SECONDS

    def refused(
        self, wanted: Sequence[Wanted], dlq_topic: str, every: Sequence[Wanted]
    ) -> dict[str, str]:
        """Make the topics that are absent; per filter, why its topic cannot be written.

        `every` are the filters of all sources: one must not lead back to where its events come from.
        """
        named = {one.filter: forbidden(one, dlq_topic, every) for one in wanted}
        able = sorted({one.topic for one in wanted if not named[one.filter]})
        bad = self._made(able) | self._topics.unwritable(able)
        found = {one.filter: named[one.filter] or bad.get(one.topic, "") for one in wanted}
        return {filter: why for filter, why in found.items() if why}

    def _made(self, names: Sequence[str]) -> dict[str, str]:
        """Of those that are absent, the ones that could not be made, with the reason."""
        there = set(self._topics.names())
        new = [name for name in names if name not in there]
        if not new or not self._failure(new):
            return {}
        found = {name: self._failure([name]) for name in new}
        return {name: why for name, why in found.items() if why}

    def _failure(self, names: Sequence[str]) -> str:
        """Why not all of these could be made; empty when they were."""
        try:
            self._topics.create([TopicSpec(name, PARTITIONS, RETENTION_DAYS) for name in names])
        except UnavailableError:
            raise
        except HeadgateError as error:
            return error.one_line
        return ""

    def missing(self, members: Collection[Member]) -> dict[str, str]:
        """The filters whose topic is not there any more, in words."""
        there = set(self._topics.names()) if members else set[str]()
        return {
            one.filter: f"topic {one.topic} does not exist any more"
            for one in members
            if one.topic not in there
        }

    def largest(self, members: Collection[Member]) -> Mapping[str, int]:
        """How many bytes a record may have on each topic."""
        names = {one.topic for one in members}
        if self._clock() - self._looked > FRESH_SECONDS:
            self._largest, self._looked = {}, self._clock()
        self._largest |= self._topics.largest(names - self._largest.keys())
        return self._largest


def forbidden(wanted: Wanted, dlq_topic: str, every: Sequence[Wanted]) -> str:
    """Why a filter must not write to its topic, whether or not it could; empty when it may."""
    if wanted.source in _reached_from(wanted.topic, every):
        return f"events would go round for ever: {wanted.topic} leads back to {wanted.source}"
    reason = reason_against_events(wanted.topic, {dlq_topic: "it is a topic of dead letters"})
    return f"its output topic {wanted.topic} is not for events: {reason}" if reason else ""


def _reached_from(topic: str, every: Sequence[Wanted]) -> set[str]:
    """This topic and all that its events are routed on to."""
    found, new = set[str](), {topic}
    while new:
        found |= new
        new = {one.topic for one in every if one.source in new} - found
    return found
