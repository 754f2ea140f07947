"""Plans which filters judge from the next batch on, their new status, and which ranges a replay owes them.

`planned` is pure: desired filters, their status and offsets in; set members, status changes and replay ranges
out. `judged_or_owed` and `left_of` read the store for it, `ReplayRequests` submits the replay jobs, a few at a time.

    desired ──▶ LIVE            or FAILED, where it does not compile or its topic cannot be written
    desired ──▶ AHEAD ──▶ LIVE  where the router has not yet come to the offsets at which it begins
    LIVE ──▶ PAUSED             by people
    LIVE ──▶ SUSPENDED          it raised on a batch, or its topic is gone
    PAUSED, SUSPENDED, FAILED ──▶ LIVE   resumed or deployed again; what it missed is replayed
    any ──▶ OFF                 no longer desired
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from headgate.core.ledger.model import ACTIVE, JobSpec
from headgate.core.ledger.offset_ranges import Spans, between, blocks, minus, union
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.sql.fragments import job_name
from headgate.errors import ConflictError
from headgate.filters.store.model import Member, Owed, Owing, Seen, Standing, Wanted
from headgate.filters.store.routing import RoutingStore

EARLIEST = "earliest"
# It is to judge from its cutover on, once it is live.
HALTED = (Standing.PAUSED, Standing.SUSPENDED, Standing.FAILED, Standing.AHEAD)
STUCK = (Standing.SUSPENDED, Standing.FAILED)
EXPIRED = "the topic no longer had them when the filter went on"


@dataclass(frozen=True)
class World:
    """What a plan goes by: what is wanted, how filters stand, and where the next batch starts.

    `begin` is what the topic still has; `refused` says of filters why they cannot be taken up;
    `known` tells which of some offsets a filter has judged, or is to judge already.
    """

    source: str
    source_id: str
    cutover: Mapping[str, int]
    begin: Mapping[str, int]
    wanted: tuple[Wanted, ...]
    seen: Mapping[str, Seen]
    refused: Mapping[str, str]
    known: Callable[[str, Spans], Spans]


@dataclass(frozen=True)
class Plan:
    """The set, the standings that change with it, and what is to be judged beside it.

    `is_final` is False while some filter waits for the router to come to where it begins: the next
    batch may change the set then, though nothing else is wanted.
    """

    members: tuple[Member, ...]
    seen: tuple[Seen, ...]
    owed: tuple[Owed, ...]
    is_final: bool = True


def planned(world: World) -> Plan:
    """The set of the next batch and all that goes with it."""
    members: list[Member] = []
    seen: list[Seen] = []
    owed: list[Owed] = []
    is_final = True
    for wanted in sorted(world.wanted, key=lambda one: one.filter):
        now = standing(world, wanted)
        before = world.seen.get(wanted.filter)
        is_final &= now.standing is not Standing.AHEAD
        if now.standing is Standing.LIVE:
            members.append(Member(wanted.filter, wanted.revision, wanted.topic))
        if before is None or not _same(before, now):
            seen.append(now)
            owed += _owed(world, wanted, before) if now.standing is Standing.LIVE else []
    seen += _gone(world)
    return Plan(tuple(members), tuple(seen), tuple(owed), is_final)


def is_new(wanted: Wanted, before: Seen | None, source_id: str) -> bool:
    """Whether the filter is to be taken up, which it may turn out that it cannot be."""
    if wanted.paused or (before is not None and _is_stuck(wanted, before)):
        return False
    if before is None or before.standing not in (Standing.LIVE, Standing.AHEAD):
        return True
    return (before.revision, before.source_id) != (wanted.revision, source_id)


def standing(world: World, wanted: Wanted) -> Seen:
    """How a wanted filter stands from the next batch on."""
    before = world.seen.get(wanted.filter)
    now = Seen(
        filter=wanted.filter,
        source=wanted.source,
        revision=wanted.revision,
        deployment=wanted.deployment,
        standing=Standing.LIVE,
        set_id="",
        cutover=world.cutover,
        source_id=world.source_id,
    )
    if before is not None and _is_stuck(wanted, before):
        return _stuck(world, before)
    beginning = _beginning(world, wanted)
    if wanted.paused:
        return replace(now, standing=Standing.PAUSED, cutover=_cursor(world, before, beginning))
    if wanted.filter in world.refused:
        reason, cursor = world.refused[wanted.filter], _cursor(world, before, {})
        return replace(now, standing=Standing.FAILED, cutover=cursor, reason=reason)
    start = _cursor(world, before, beginning)
    if any(start.get(p, 0) > offset for p, offset in world.cutover.items()):
        return replace(now, standing=Standing.AHEAD, cutover=start)
    return now


def _beginning(world: World, wanted: Wanted) -> Mapping[str, int]:
    """Where a filter that has judged nothing yet begins: not before the end at its deployment.

    A router that is started later, or lags behind, comes to older events after the deployment.
    """
    since = wanted.since
    if wanted.backfill == EARLIEST or since is None or since.topic_id != world.source_id:
        return world.cutover
    return {p: max(offset, since.offsets.get(p, 0)) for p, offset in world.cutover.items()}


def _is_stuck(wanted: Wanted, before: Seen) -> bool:
    """A filter that failed is tried again when it is deployed again, and not before."""
    same = (before.deployment, before.revision) == (wanted.deployment, wanted.revision)
    return before.standing in STUCK and same and not wanted.paused


def _stuck(world: World, before: Seen) -> Seen:
    """As before; on a topic that was made again it has judged nothing from the beginning on."""
    if before.source_id == world.source_id:
        return before
    moved = replace(before, source_id=world.source_id, at=None)
    return replace(moved, cutover=world.cutover) if before.cutover else moved


def _cursor(world: World, before: Seen | None, otherwise: Mapping[str, int]) -> Mapping[str, int]:
    """The first offset that the filter did not judge; of one that never judged, as said."""
    if before is None or before.source_id != world.source_id or before.standing is Standing.OFF:
        return otherwise
    return world.cutover if before.standing is Standing.LIVE else before.cutover or otherwise


def _same(before: Seen, now: Seen) -> bool:
    """Whether nothing has changed; a live one has been so since its own cutover."""
    now = replace(now, set_id=before.set_id, at=before.at, cutover=before.cutover)
    return before == now


def _owed(world: World, wanted: Wanted, before: Seen | None) -> list[Owed]:
    """What the filter missed while it was halted, or all there is where its document asks for that."""
    start: Mapping[str, int] | None = None
    if before is not None and before.source_id == world.source_id and before.standing in HALTED:
        start = before.cutover or None
    if wanted.backfill == EARLIEST:
        start = {
            p: min(world.begin.get(p, 0), (start or world.begin).get(p, 0)) for p in world.cutover
        }
    if start is None:
        return []
    within = between(start, world.cutover)
    missed = minus(within, world.known(wanted.filter, within))
    there = minus(missed, between({}, world.begin))
    gone = minus(missed, there)
    left = [_row(world, wanted, *block) for block in blocks(there)]
    lost = [_row(world, wanted, *block) for block in blocks(gone)]
    return left + [replace(one, state=Owing.GIVEN_UP, reason=EXPIRED) for one in lost]


def _row(world: World, wanted: Wanted, start: Mapping[str, int], end: Mapping[str, int]) -> Owed:
    return Owed(None, wanted.filter, world.source, world.source_id, start, end)


def _gone(world: World) -> list[Seen]:
    """Filters that are no longer wanted: their ranges end here."""
    wanted = {one.filter for one in world.wanted}
    ended = (s for s in world.seen.values() if s.filter not in wanted)
    return [
        replace(one, standing=Standing.OFF, reason="", at=None, cutover=_cursor(world, one, {}))
        for one in sorted(ended, key=lambda one: one.filter)
        if one.standing is not Standing.OFF
    ]


def judged_or_owed(
    routing: RoutingStore, filter: str, source: str, source_id: str, within: Spans
) -> Spans:
    """What the filter has judged of these offsets, or is to judge already."""
    owed = routing.owed(filter, (Owing.WAITING, Owing.FAILED))
    judged = routing.judged_within(filter, source, source_id, within)
    return union(judged, _spans(owed, source_id))


def left_of(routing: RoutingStore, owed: Owed, begin: Mapping[str, int]) -> Spans:
    """What is still to be judged of it; what has expired since is put on record as given up."""
    whole = between(owed.start, owed.end)
    given_up = _spans(routing.owed(owed.filter, (Owing.GIVEN_UP,)), owed.source_id)
    judged = routing.judged_within(owed.filter, owed.source, owed.source_id, whole)
    left = minus(whole, union(judged, given_up))
    there = minus(left, between({}, begin))
    gone = blocks(minus(left, there))
    if gone:
        lost = [replace(owed, id=None, start=start, end=end) for start, end in gone]
        routing.give_up(lost, EXPIRED)
    return there


def _spans(owed: tuple[Owed, ...], source_id: str) -> Spans:
    return union(*(between(o.start, o.end) for o in owed if o.source_id == source_id))


REPLAY = "replay"
# Live traffic goes first: more at once would only wait for each other.
AT_ONCE = 2


class ReplayRequests:
    """Looks for offsets that filters of one source are owed and that no run is judging."""

    def __init__(self, store: OpsStore, source: str) -> None:
        self._store, self._source = store, source

    def look(self) -> tuple[str, ...]:
        """The jobs that were asked for now."""
        waiting = self._waiting()
        if not waiting:
            return ()
        active = {run.job for run in self._store.runs(states=ACTIVE) if run.kind == REPLAY}
        free = [filter for filter in waiting if job_name(REPLAY, filter) not in active]
        return tuple(self._asked(free[: max(0, AT_ONCE - len(active))]))

    def _waiting(self) -> list[str]:
        routing = self._store.part(RoutingStore)
        owed = routing.owed(states=(Owing.WAITING,))
        filters = list(dict.fromkeys(one.filter for one in owed if one.source == self._source))
        if not filters:
            return []
        live = {one.filter for one in routing.seen(self._source) if one.standing is Standing.LIVE}
        return [filter for filter in filters if filter in live]

    def _asked(self, filters: Iterable[str]) -> Iterable[str]:
        for filter in filters:
            job = job_name(REPLAY, filter)
            try:
                self._store.submit(JobSpec(job, REPLAY, filter, "batch", ""))
            except ConflictError:  # somebody was quicker
                continue
            yield job
