"""Which places are of a batch: none of a side that has no record in it."""

from __future__ import annotations

from headgate.core.ledger.model import Range
from headgate.reconcile.job.states import inside


def range_of(start: dict[str, int], end: dict[str, int]) -> Range:
    return Range("pair:topic1,topic2", "id", start, end)


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
