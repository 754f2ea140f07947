"""Which places are of a batch: none of a side that has no record in it."""

from __future__ import annotations

from headgate.core.ledger.ranges import PairRange, TopicRange, side_offsets
from headgate.reconcile.job.states import inside


def range_of(start: dict[str, int], end: dict[str, int]) -> PairRange:
    return PairRange(
        {
            side: TopicRange(topic, "id", side_offsets(start, side), side_offsets(end, side))
            for side, topic in (("onprem", "topic1"), ("cloud", "topic2"))
        }
    )


def test_a_place_is_between_start_and_end_of_its_partition() -> None:
    found = inside("onprem", "onprem", range_of({"onprem:1": 3}, {"onprem:0": 2, "onprem:1": 5}))
    assert found == (
        "(onprem.offset >= get(array(0L, 3L), onprem.partition)"
        " AND onprem.offset < get(array(2L, 5L), onprem.partition))"
    )


def test_no_place_is_of_a_batch_without_a_record_of_its_side() -> None:
    same = {"cloud:0": 4, "cloud:1": 0}
    both = range_of({**same, "onprem:0": 1}, {**same, "onprem:0": 2})
    assert inside("cloud_first", "cloud", both) == "(FALSE)"
    assert inside("onprem", "onprem", both) != "(FALSE)"
    assert inside("cloud", "cloud", range_of({}, {"onprem:0": 2})) == "(FALSE)"
