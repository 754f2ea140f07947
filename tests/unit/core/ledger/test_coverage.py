from __future__ import annotations

from tests.support.ledger_rows import intent, ledger_row, table_range, topic_range

from headgate.core.ledger.model import LedgerRow
from headgate.core.ledger.offset_ranges import coverage, gaps, overlaps, since_rebuild, span
from headgate.core.ledger.ranges import Range


def settled(range_: Range) -> LedgerRow:
    return ledger_row(intent(range_))


def test_contiguous_ranges_have_neither_gaps_nor_overlaps() -> None:
    rows = [
        settled(topic_range({}, {"0": 3, "1": 0})),
        settled(topic_range({"0": 3, "1": 0}, {"0": 3, "1": 8})),
        settled(topic_range({"0": 3, "1": 8}, {"0": 9, "1": 8})),
    ]
    assert gaps(rows) == overlaps(rows) == ()
    assert coverage(rows) == {"0": 9, "1": 8}
    assert sum(span(row.range) for row in rows) == 17


def test_what_was_skipped_is_a_gap() -> None:
    rows = [settled(topic_range({"0": 0}, {"0": 3})), settled(topic_range({"0": 5}, {"0": 9}))]
    (seam,) = gaps(rows)
    assert (seam.expected, seam.found) == (3, 5)
    assert "skips" in seam.sentence()
    assert overlaps(rows) == ()


def test_what_was_settled_twice_is_an_overlap() -> None:
    rows = [settled(topic_range({"0": 0}, {"0": 9})), settled(topic_range({"0": 3}, {"0": 5}))]
    (seam,) = overlaps(rows)
    assert (seam.partition, seam.expected, seam.found) == ("0", 9, 3)
    assert gaps(rows) == ()


def test_a_recreated_topic_is_another_source() -> None:
    rows = [
        settled(topic_range({"0": 0}, {"0": 9})),
        settled(topic_range({"0": 0}, {"0": 2}, "t2")),
    ]
    assert gaps(rows) == overlaps(rows) == ()
    assert coverage(rows) == {"0": 2}


def test_a_table_is_followed_snapshot_by_snapshot_since_its_rebuild() -> None:
    rows = [settled(table_range(7, 9)), settled(table_range(None, 3)), settled(table_range(3, 4))]
    assert gaps(rows) == ()
    assert since_rebuild(rows) == tuple(rows[1:])
    assert coverage(rows) == {"snapshot": 4}
    assert [seam.found for seam in gaps([*rows, settled(table_range(5, 6))])] == [5]
