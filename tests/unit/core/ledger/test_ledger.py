from __future__ import annotations

from dataclasses import replace

import pytest
from tests.support.ledger_rows import intent, ledger_row, table_range, topic_range

from headgate.core.ledger.ops_store import OpsStore
from headgate.errors import BatchRefusedError


def test_a_replay_gets_the_stored_intent(store: OpsStore) -> None:
    first = store.begin(intent(topic_range({"0": 0}, {"0": 10}), ("old",)))
    again = store.begin(intent(topic_range({"0": 0}, {"0": 25}), ("new",), run=2))
    assert again == first
    assert again.revisions == ("old",)
    assert store.open_intents("bronze-orders") == (first,)


def test_a_settled_intent_is_still_found_by_its_start(store: OpsStore) -> None:
    begun = store.begin(intent(topic_range({"0": 0}, {"0": 10})))
    store.settle(begun, ledger_row(begun, accepted=10))
    assert store.open_intents("bronze-orders") == ()
    assert store.intent_at("bronze-orders", {"0": 0}) == begun
    assert store.begin(intent(topic_range({"0": 0}, {"0": 10}), run=2)) == begun


def test_a_recreated_topic_begins_anew(store: OpsStore) -> None:
    begun = store.begin(intent(topic_range({"0": 0}, {"0": 10})))
    assert store.begin(intent(topic_range({"0": 0}, {"0": 10}, "t2"))).id != begun.id


def test_an_outcome_is_written_once_and_read_back_whole(store: OpsStore) -> None:
    begun = store.begin(intent(topic_range({"0": 5}, {"0": 15})))
    row = ledger_row(begun, accepted=7, refused=1, tombstone=1, gaps=1)
    settled = store.settle(begun, row)
    assert store.settle(begun, row) == settled
    assert store.ledger("bronze-orders") == (settled,)
    assert replace(settled, id=None) == row


@pytest.mark.parametrize("accepted", [9, 11])
def test_outcomes_that_do_not_sum_to_read_are_refused(store: OpsStore, accepted: int) -> None:
    begun = store.begin(intent(topic_range({"0": 0}, {"0": 10})))
    row = replace(ledger_row(begun, accepted=accepted), read=10, span=10, gaps=0)
    with pytest.raises(BatchRefusedError, match="the outcomes of bronze-orders do not add up"):
        store.settle(begun, row)
    assert store.open_intents("bronze-orders") == (begun,)
    assert store.ledger() == ()


def test_offsets_that_do_not_sum_to_the_span_are_refused(store: OpsStore) -> None:
    begun = store.begin(intent(topic_range({"0": 0}, {"0": 10})))
    with pytest.raises(BatchRefusedError, match="offsets"):
        store.settle(begun, replace(ledger_row(begun, accepted=9), span=10))


def test_an_outcome_of_another_range_is_refused(store: OpsStore) -> None:
    begun = store.begin(intent(topic_range({"0": 0}, {"0": 10})))
    other = ledger_row(intent(topic_range({"0": 0}, {"0": 11})), accepted=11)
    with pytest.raises(BatchRefusedError, match="announced"):
        store.settle(begun, other)


def test_an_overlap_in_any_partition_is_refused(store: OpsStore) -> None:
    first = store.begin(intent(topic_range({"0": 0, "1": 0}, {"0": 10, "1": 10})))
    store.settle(first, ledger_row(first, accepted=20))
    second = store.begin(intent(topic_range({"0": 10, "1": 9}, {"0": 20, "1": 20})))
    with pytest.raises(BatchRefusedError, match="already settled"):
        store.settle(second, ledger_row(second, accepted=21))


def test_coverage_is_where_the_next_batch_starts(store: OpsStore) -> None:
    assert store.coverage("bronze-orders") == {}
    for start, end, count in (({"0": 0}, {"0": 10, "1": 0}, 10), ({"0": 10}, {"0": 10, "1": 4}, 4)):
        begun = store.begin(intent(topic_range(start, end)))
        store.settle(begun, ledger_row(begun, accepted=count))
    assert store.coverage("bronze-orders") == {"0": 10, "1": 4}


def test_an_amended_intent_takes_the_place_of_the_old(store: OpsStore) -> None:
    begun = store.begin(intent(topic_range({"0": 0}, {"0": 10}), ("good", "poison")))
    amended = store.amend(begun, ("good",))
    assert (amended.amends, amended.revisions) == (begun.id, ("good",))
    assert store.open_intents("bronze-orders") == (amended,)
    assert store.intent_at("bronze-orders", {"0": 0}) == amended
    with pytest.raises(BatchRefusedError):
        store.amend(begun, ())


def test_a_full_rebuild_may_be_done_again_and_starts_anew(store: OpsStore) -> None:
    for range_, kept in (
        (table_range(None, 1), 5),
        (table_range(1, 2), 3),
        (table_range(None, 1), 5),
        (table_range(1, 2), 3),
    ):
        begun = store.begin(intent(range_))
        assert begun.range == range_
        store.settle(begun, ledger_row(begun, kept=kept))
    assert [row.read for row in store.ledger("silver-orders")] == [5, 3, 5, 3]
    assert store.coverage("silver-orders") == {"snapshot": 2}


def test_two_increments_from_one_snapshot_are_refused(store: OpsStore) -> None:
    begun = store.begin(intent(table_range(1, 2)))
    store.settle(begun, ledger_row(begun, kept=1))
    assert store.begin(intent(table_range(1, 3))) == begun


def test_rebuilding_adds_only_what_is_missing(store: OpsStore) -> None:
    begun = store.begin(intent(topic_range({"0": 0}, {"0": 10})))
    known = store.settle(begun, ledger_row(begun, accepted=10))
    left_open = store.begin(intent(topic_range({"0": 10}, {"0": 20})))
    missing = ledger_row(left_open, accepted=10)
    assert store.rebuild([(known, ()), (missing, ())]) == 1
    assert store.rebuild([(known, ()), (missing, ())]) == 0
    assert [row.rebuilt for row in store.ledger()] == [False, True]
    assert store.open_intents("bronze-orders") == ()
