"""The set of filters that judges a batch: compiled revisions, by set id, and the topics that they send to.

Each revision is compiled once. Output topics are created where they are absent and never altered.
"""

from __future__ import annotations

import json
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from headgate.core.kafka.topics import Topics, TopicSpec
from headgate.core.ledger.ops_store import OpsStore
from headgate.declarations.names import reason_against_events
from headgate.errors import BatchRefusedError, HeadgateError, UnavailableError
from headgate.filters.compile.routing import RouterScript, router_script
from headgate.filters.compile.spark_sql import CompiledFilter, compile_filter
from headgate.filters.loader import parse_filter
from headgate.filters.store.model import Member, Wanted
from headgate.filters.store.routing import RoutingStore

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


# A batch of before is judged by its own set; while a culprit is looked for there are some more.
REMEMBERED = 8


@dataclass(frozen=True)
class FilterSet:
    """The filters that judge a batch; a row's `filter` is the index of one of them."""

    members: tuple[Member, ...]
    script: RouterScript

    def without(self, filters: Iterable[str]) -> tuple[Member, ...]:
        left_out = set(filters)
        return tuple(one for one in self.members if one.filter not in left_out)


class FilterSets:
    """Compiles each revision once."""

    def __init__(self, store: OpsStore) -> None:
        self._store = store
        self._compiled: dict[str, CompiledFilter] = {}
        self._sets: OrderedDict[tuple[Member, ...], FilterSet] = OrderedDict()
        self._last: tuple[str, FilterSet] | None = None

    def compiled(self, revision: str, content: str) -> CompiledFilter:
        """The filter made ready; DeclarationError when its document is not valid."""
        if revision not in self._compiled:
            self._compiled[revision] = compile_filter(parse_filter(json.loads(content)))
        return self._compiled[revision]

    def of(self, set_id: str) -> FilterSet:
        """The set of this id, as it was put on record."""
        if self._last is None or self._last[0] != set_id:
            self._last = set_id, self.made(self._store.part(RoutingStore).members(set_id))
        return self._last[1]

    def made(self, members: Sequence[Member]) -> FilterSet:
        key = tuple(members)
        if key not in self._sets:
            script = router_script([self._of_member(one) for one in key])
            self._sets[key] = FilterSet(key, script)
        self._sets.move_to_end(key)
        while len(self._sets) > REMEMBERED:
            self._sets.popitem(last=False)
        return self._sets[key]

    def forget_all_but(self, members: Iterable[Member]) -> None:
        """Let go of revisions that no longer judge; the store has them."""
        kept = {one.revision for one in members}
        self._compiled = {r: one for r, one in self._compiled.items() if r in kept}

    def _of_member(self, member: Member) -> CompiledFilter:
        if member.revision in self._compiled:
            return self._compiled[member.revision]
        kept = self._store.revision(member.revision)
        if kept is None:
            raise BatchRefusedError(
                f"revision {member.revision[:12]} of filter {member.filter} is not in the ops store",
                why="a batch was announced under it, and must be judged by it",
                fix="restore the ops store",
            )
        return self.compiled(member.revision, kept.content)
