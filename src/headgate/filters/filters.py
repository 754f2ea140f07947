"""How filters stand, in numbers: what each sent on, and how far it is behind the router."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from headgate.core.ledger.ops_store import OpsStore
from headgate.core.ledger.spans import between, merged, minus, size, union
from headgate.core.metrics import metrics_names as names
from headgate.core.metrics.family import Family
from headgate.filters.store.routing_model import Owed, Owing, Seen, Standing

HALTED = (Standing.PAUSED, Standing.SUSPENDED, Standing.FAILED)


def families(store: OpsStore, sums: Mapping[tuple[str, str], tuple[int, int]]) -> Iterator[Family]:
    """Every metric of filters; `sums` are those of the ledger, by job and filter."""
    pairs = sorted(sums.items())
    yield Family(names.FILTER_ROUTED, tuple((key, n) for key, (n, _) in pairs))
    yield Family(names.FILTER_REFUSED, tuple((key, refused) for key, (_, refused) in pairs))
    seen = [one for one in store.routing.seen() if one.standing is not Standing.OFF]
    live = (
        ((one.source, one.filter, one.standing.value), float(one.standing is Standing.LIVE))
        for one in seen
    )
    yield Family(names.FILTER_LIVE, tuple(live))
    yield Family(names.FILTER_BEHIND, tuple(_behind(store, seen)))


def _behind(store: OpsStore, seen: list[Seen]) -> Iterator[tuple[tuple[str, str], float]]:
    owed: dict[str, list[Owed]] = {}
    for one in store.routing.owed(states=(Owing.WAITING, Owing.FAILED)):
        owed.setdefault(one.filter, []).append(one)
    reached = {
        source: store.settled_range(f"router-{source}") for source in {one.source for one in seen}
    }
    for one in seen:
        left = _owed(store, one.filter, owed.get(one.filter, []))
        far = reached[one.source]
        if one.standing in HALTED and one.cutover and far and far.source_id == one.source_id:
            left += size(between(one.cutover, far.end))
        yield (one.source, one.filter), left


def _owed(store: OpsStore, filter: str, owed: list[Owed]) -> int:
    if not owed:
        return 0
    ranges = store.routing.routed(filter).ranges
    judged = merged((one.partition, one.start, one.end) for one in ranges)
    return size(minus(union(*(between(one.start, one.end) for one in owed)), judged))
