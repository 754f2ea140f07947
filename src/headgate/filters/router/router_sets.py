"""Sets of filters made ready to judge: compiled once, and again from the store for a batch of before."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headgate.core.ledger.ops_store import OpsStore
from headgate.errors import BatchRefusedError
from headgate.filters.compile.compile import compile_filter
from headgate.filters.compile.filters_routing import RouterScript, router_script
from headgate.filters.compile.model import CompiledFilter
from headgate.filters.loader import parse_filter
from headgate.filters.store.routing_model import Member

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
            self._last = set_id, self.made(self._store.routing.members(set_id))
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
