from __future__ import annotations

from dataclasses import replace

from headgate.core.ledger.model import Intent, LedgerRow
from headgate.core.ledger.ops_store import OpsStore, utc_now
from headgate.core.ledger.ranges import TopicRange
from headgate.core.metrics.readings import Readings
from headgate.filters.store.model import (
    Member,
    Owed,
    RoutedBatch,
    RoutedCount,
    Seen,
    Standing,
)
from headgate.filters.store.routed import RoutedRows
from headgate.filters.store.routing import RoutingStore

LIVE = Seen("one", "events", "r1", "d1", Standing.LIVE, "", {"0": 0}, source_id="t1")


def settle(store: OpsStore, start: int, end: int, n: int, refused: int) -> None:
    set_id = store.part(RoutingStore).keep_set("events", [Member("one", "r1", "out")])
    range_ = TopicRange("events", "t1", {"0": start}, {"0": end})
    intent = store.begin(Intent(None, "router-events", 1, range_, (set_id,), utc_now(), 0))
    read = end - start
    row = LedgerRow(
        None, intent.job, 1, range_, (set_id,), intent.batch_time, 0, read, read, 0,
        {"routed": read}, {}, utc_now(),
    )  # fmt: skip
    batch = RoutedBatch(set_id, (RoutedCount("one", "r1", n, refused),))
    store.settle(intent, row, (RoutedRows(batch),))


def values(readings: Readings, name: str) -> dict[tuple[str, ...], float]:
    found = {family.metric.name: family for family in readings.families()}
    return dict(found[name].samples) if name in found else {}


def test_what_filters_sent_on_is_summed_over_the_ledger(store: OpsStore) -> None:
    readings = Readings(store)
    settle(store, 0, 10, 3, 1)
    assert values(readings, "headgate_filter_routed_total") == {("router-events", "one"): 3}
    settle(store, 10, 20, 4, 0)
    assert values(readings, "headgate_filter_routed_total") == {("router-events", "one"): 7}
    assert values(readings, "headgate_filter_refused_total") == {("router-events", "one"): 1}


def test_a_filter_is_behind_by_what_it_owes_or_missed(store: OpsStore) -> None:
    settle(store, 0, 20, 3, 1)
    store.part(RoutingStore).see([LIVE])
    assert values(Readings(store), "headgate_filter_behind") == {("events", "one"): 0}
    store.part(RoutingStore).see([replace(LIVE, standing=Standing.SUSPENDED, cutover={"0": 12})])
    assert values(Readings(store), "headgate_filter_behind") == {("events", "one"): 8}
    assert values(Readings(store), "headgate_filter_live") == {("events", "one", "suspended"): 0}
    owed = Owed(None, "one", "events", "t1", {"0": 12}, {"0": 25})
    store.part(RoutingStore).take_over("events", [], [replace(LIVE, cutover={"0": 25})], [owed])
    assert values(Readings(store), "headgate_filter_behind") == {("events", "one"): 5}
