"""Which offsets a filter has judged, and which it still owes, from the store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from headgate.core.ledger.spans import Spans, between, blocks, minus, union
from headgate.filters.router.router_plan import EXPIRED
from headgate.filters.store.routing import RoutingStore
from headgate.filters.store.routing_model import Owed, Owing


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
