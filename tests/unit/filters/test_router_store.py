from __future__ import annotations

from dataclasses import replace

import pytest
from tests.support.clock import ManualClock
from tests.support.ledger_rows import intent, ledger_row, topic_range

from headgate.core.ledger.ops_store import OpsStore
from headgate.errors import BatchRefusedError
from headgate.filters.store.model import (
    Boundary,
    Member,
    Owed,
    Owing,
    RevisionCount,
    RoutedBatch,
    RoutedCount,
    RoutedRange,
    RoutedSum,
    Seen,
    Standing,
    Wanted,
)
from headgate.filters.store.routed import RoutedRows
from headgate.filters.store.routing import RoutingStore

SOURCE = "raw-event-headers"
ONE = Wanted("dealer-001", SOURCE, "a" * 64, '{"id":"dealer-001"}', "out-001", "d1")
TWO = Wanted("dealer-002", SOURCE, "b" * 64, '{"id":"dealer-002"}', "out-002", "d2")
LIVE = Seen("dealer-001", SOURCE, "a" * 64, "d1", Standing.LIVE, "", {"0": 5})


def members(*wanted: Wanted) -> tuple[Member, ...]:
    return tuple(Member(one.filter, one.revision, one.topic) for one in wanted)


def settled(
    store: OpsStore, set_id: str, start: int, end: int, counts: tuple[RoutedCount, ...] = ()
) -> None:
    announced = store.begin(intent(topic_range({"0": start}, {"0": end}), (set_id,)))
    extras = (RoutedRows(RoutedBatch(set_id, counts)),)
    store.settle(announced, ledger_row(announced, routed=end - start), extras)


def test_what_is_wanted_is_read_back_by_source(store: OpsStore) -> None:
    routing = store.part(RoutingStore)
    routing.want(TWO)
    routing.want(ONE)
    routing.want(replace(ONE, filter="other", source="elsewhere"))
    assert routing.wanted(SOURCE) == (ONE, TWO)
    assert [one.filter for one in routing.wanted()] == ["dealer-001", "dealer-002", "other"]
    assert routing.wanted_filter("dealer-002") == TWO


def test_each_change_of_what_is_wanted_and_nothing_else_is_noticed(store: OpsStore) -> None:
    routing = store.part(RoutingStore)
    routing.want(ONE)
    first = routing.generation(SOURCE)
    routing.want(ONE)
    assert routing.generation(SOURCE) == first
    routing.want(replace(ONE, paused=True))
    routing.unwant("dealer-001")
    routing.unwant("dealer-001")
    assert routing.generation(SOURCE) == first + 2
    assert routing.wanted() == ()


def test_a_filter_that_moves_to_another_source_is_a_change_of_both(store: OpsStore) -> None:
    store.part(RoutingStore).want(ONE)
    store.part(RoutingStore).want(replace(ONE, source="elsewhere"))
    assert store.part(RoutingStore).generation(SOURCE) == 2
    assert store.part(RoutingStore).generation("elsewhere") == 1


def test_the_content_of_a_wanted_revision_outlives_the_wish(store: OpsStore) -> None:
    store.part(RoutingStore).want(ONE)
    store.part(RoutingStore).unwant(ONE.filter)
    kept = store.revision(ONE.revision)
    assert kept is not None
    assert (kept.kind, kept.name, kept.content) == ("filter", "dealer-001", ONE.content)


def test_the_newest_standing_counts_and_the_old_ones_stay_on_record(
    store: OpsStore, clock: ManualClock
) -> None:
    store.part(RoutingStore).see([LIVE])
    clock.advance(1)
    store.part(RoutingStore).see([replace(LIVE, standing=Standing.OFF, cutover={"0": 9})])
    (now,) = store.part(RoutingStore).seen(SOURCE)
    assert (now.standing, now.cutover, now.at) == (Standing.OFF, {"0": 9}, clock.now)
    assert [one.standing for one in store.part(RoutingStore).history("dealer-001")] == [
        "live",
        "off",
    ]
    assert store.part(RoutingStore).seen("elsewhere") == ()


def test_a_filter_that_is_moved_stands_on_each_source_as_its_router_says(store: OpsStore) -> None:
    there = replace(LIVE, source="elsewhere", revision="b" * 64)
    store.part(RoutingStore).see([LIVE])
    store.part(RoutingStore).see([there])
    assert [one.source for one in store.part(RoutingStore).seen()] == ["elsewhere"]
    assert [one.standing for one in store.part(RoutingStore).seen(SOURCE)] == [Standing.LIVE]
    store.part(RoutingStore).see([replace(LIVE, standing=Standing.OFF)])
    assert [one.standing for one in store.part(RoutingStore).seen("elsewhere")] == [Standing.LIVE]
    assert (
        store.part(RoutingStore).seen_filter(LIVE.filter)
        == store.part(RoutingStore).seen("elsewhere")[0]
    )


def test_a_set_is_known_by_its_filters_in_any_order(store: OpsStore) -> None:
    one = store.part(RoutingStore).keep_set(SOURCE, members(ONE, TWO))
    assert store.part(RoutingStore).keep_set(SOURCE, members(TWO, ONE)) == one
    assert store.part(RoutingStore).members(one) == members(ONE, TWO)
    kept = store.revision(one)
    assert kept is not None
    assert (kept.kind, kept.name) == ("filter-set", SOURCE)


def test_a_set_takes_over_with_all_that_goes_with_it(store: OpsStore) -> None:
    owed = Owed(None, "dealer-001", SOURCE, "t1", {"0": 0}, {"0": 5})
    set_id = store.part(RoutingStore).take_over(SOURCE, members(ONE), [LIVE], [owed])
    (seen,) = store.part(RoutingStore).seen()
    (found,) = store.part(RoutingStore).owed("dealer-001")
    assert seen.set_id == set_id
    assert (found.start, found.end, found.state) == ({"0": 0}, {"0": 5}, Owing.WAITING)
    store.part(RoutingStore).settle_owed(found, Owing.DONE)
    assert store.part(RoutingStore).owed(states=[Owing.WAITING]) == ()


def test_a_filter_that_makes_its_batch_fail_leaves_the_intent_and_is_suspended_at_once(
    store: OpsStore,
) -> None:
    both = store.part(RoutingStore).keep_set(SOURCE, members(ONE, TWO))
    announced = store.begin(intent(topic_range({"0": 5}, {"0": 9}), (both,)))
    bad = replace(LIVE, standing=Standing.SUSPENDED, reason="it raised")
    amended = store.part(RoutingStore).suspend(announced, members(TWO), [bad])
    assert amended.amends == announced.id
    assert store.open_intents(announced.job) == (amended,)
    assert store.part(RoutingStore).members(amended.revisions[0]) == members(TWO)
    assert store.part(RoutingStore).seen()[0].reason == "it raised"
    with pytest.raises(BatchRefusedError):
        store.part(RoutingStore).suspend(announced, (), [bad])


def test_the_ranges_of_a_filter_are_those_of_the_sets_it_was_in(store: OpsStore) -> None:
    routing = store.part(RoutingStore)
    one, both = routing.keep_set(SOURCE, members(ONE)), routing.keep_set(SOURCE, members(ONE, TWO))
    newer = replace(ONE, revision="c" * 64)
    settled(store, one, 0, 10, (RoutedCount("dealer-001", ONE.revision, 3),))
    settled(store, both, 10, 20, (RoutedCount("dealer-002", TWO.revision, 2, refused=1),))
    settled(store, routing.keep_set(SOURCE, members(newer)), 20, 30)
    found = routing.routed("dealer-001")
    at = ("bronze-orders", "kafka:orders", "t1", "0")
    assert found.ranges == (
        RoutedRange(at[0], ONE.revision, *at[1:], 0, 20, batches=2),
        RoutedRange(at[0], newer.revision, *at[1:], 20, 30),
    )
    assert found.sums == (RoutedSum("bronze-orders", ONE.revision, 3, 0),)
    assert routing.routed("dealer-002").ranges == (
        RoutedRange(at[0], TWO.revision, *at[1:], 10, 20),
    )
    assert routing.routed_sums() == {"dealer-001": (3, 0), "dealer-002": (2, 1)}


def test_each_revision_of_a_filter_counts_what_it_judged_and_sent(store: OpsStore) -> None:
    routing = store.part(RoutingStore)
    one, both = routing.keep_set(SOURCE, members(ONE)), routing.keep_set(SOURCE, members(ONE, TWO))
    newer = replace(ONE, revision="0" * 64)
    settled(store, one, 0, 10, (RoutedCount("dealer-001", ONE.revision, 3),))
    other = RoutedCount("dealer-002", TWO.revision, 2)
    settled(store, both, 10, 15, (RoutedCount("dealer-001", ONE.revision, 1, refused=1), other))
    settled(store, routing.keep_set(SOURCE, members(newer)), 15, 22)
    assert routing.revision_counts("dealer-001") == (
        RevisionCount(ONE.revision, 15, 4, 1),
        RevisionCount(newer.revision, 7, 0, 0),
    )
    assert routing.revision_counts("dealer-002") == (RevisionCount(TWO.revision, 5, 2, 0),)
    assert routing.revision_counts("dealer-003") == ()


def test_a_batch_that_is_refused_leaves_no_count(store: OpsStore) -> None:
    set_id = store.part(RoutingStore).keep_set(SOURCE, members(ONE))
    announced = store.begin(intent(topic_range({"0": 0}, {"0": 9}), (set_id,)))
    counts = (RoutedCount("dealer-001", ONE.revision, 3),)
    row = replace(ledger_row(announced, routed=9), read=8)
    with pytest.raises(BatchRefusedError):
        store.settle(announced, row, (RoutedRows(RoutedBatch(set_id, counts)),))
    assert store.part(RoutingStore).routed_sums() == {}
    assert store.part(RoutingStore).routed("dealer-001").ranges == ()


def test_the_counts_of_batches_stand_by_their_rows(store: OpsStore) -> None:
    set_id = store.part(RoutingStore).keep_set(SOURCE, members(ONE, TWO))
    count = RoutedCount("dealer-001", ONE.revision, 3)
    settled(store, set_id, 0, 10, (count, RoutedCount("dealer-002", TWO.revision, 0)))
    settled(store, set_id, 10, 20)
    first, second = store.ledger("bronze-orders")
    assert store.part(RoutingStore).routed_batches("bronze-orders") == {
        first.id: RoutedBatch(set_id, (count,)),
        second.id: RoutedBatch(set_id),
    }


def test_only_the_engine_between_the_two_batches_says_how_filters_stand(store: OpsStore) -> None:
    routing = store.part(RoutingStore)
    set_id = routing.keep_set(SOURCE, members(ONE))
    here = Boundary("bronze-orders", "t1", {})
    routing.take_over(SOURCE, members(ONE), [LIVE], [], here)
    announced = store.begin(intent(topic_range({"0": 0}, {"0": 9}), (set_id,)))
    with pytest.raises(BatchRefusedError):
        routing.take_over(SOURCE, members(ONE), [LIVE], [], here)
    extras = (RoutedRows(RoutedBatch(set_id)),)
    store.settle(announced, ledger_row(announced, routed=9), extras)
    with pytest.raises(BatchRefusedError):
        routing.take_over(SOURCE, members(ONE), [LIVE], [], here)
    routing.take_over(SOURCE, members(ONE), [LIVE], [], replace(here, reached={"0": 9}))
    assert len(routing.history("dealer-001")) == 2


def test_what_a_filter_judged_is_found_within_the_offsets_asked_for(store: OpsStore) -> None:
    routing = store.part(RoutingStore)
    one, two = routing.keep_set(SOURCE, members(ONE)), routing.keep_set(SOURCE, members(TWO))
    for start, set_id in ((0, one), (10, two), (20, one)):
        range_ = replace(topic_range({"0": start}, {"0": start + 10}), topic=SOURCE)
        mine = replace(intent(range_, (set_id,)), job=f"router-{SOURCE}")
        announced = store.begin(mine)
        extras = (RoutedRows(RoutedBatch(set_id)),)
        store.settle(announced, ledger_row(announced, routed=10), extras)
    found = routing.judged_within("dealer-001", SOURCE, "t1", {"0": [(5, 25)], "1": [(0, 9)]})
    assert found == {"0": [(0, 10), (20, 30)]}
    assert routing.judged_within("dealer-001", SOURCE, "t2", {"0": [(5, 25)]}) == {}
