"""Which offsets a filter has judged, and which it still owes, from the store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from headgate.jobs.router_plan import EXPIRED
from headgate.store.routing import RoutingStore
from headgate.store.routing_model import Owed, Owing
from headgate.store.spans import Spans, between, blocks, merged, minus, union


def judged_or_owed(routing: RoutingStore, filter: str, source_id: str) -> Spans:
    """What the filter has judged of this topic, or is to judge already."""
    owed = routing.owed(filter, (Owing.WAITING, Owing.FAILED))
    return union(_judged(routing, filter, source_id), _spans(owed, source_id))


def left_of(routing: RoutingStore, owed: Owed, begin: Mapping[str, int]) -> Spans:
    """What is still to be judged of it; what has expired since is put on record as given up."""
    given_up = _spans(routing.owed(owed.filter, (Owing.GIVEN_UP,)), owed.source_id)
    done = union(_judged(routing, owed.filter, owed.source_id), given_up)
    left = minus(between(owed.start, owed.end), done)
    there = minus(left, between({}, begin))
    gone = blocks(minus(left, there))
    if gone:
        lost = [replace(owed, id=None, start=start, end=end) for start, end in gone]
        routing.give_up(lost, EXPIRED)
    return there


def _judged(routing: RoutingStore, filter: str, source_id: str) -> Spans:
    ranges = routing.routed(filter).ranges
    return merged((r.partition, r.start, r.end) for r in ranges if r.source_id == source_id)


def _spans(owed: tuple[Owed, ...], source_id: str) -> Spans:
    return union(*(between(o.start, o.end) for o in owed if o.source_id == source_id))
