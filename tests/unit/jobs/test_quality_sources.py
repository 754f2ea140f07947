"""What an evaluation as a whole keeps of its sources' ends, and finds again in them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from headgate.engine.protocol import later_than, span
from headgate.engine.topics import TopicState
from headgate.jobs.quality_sources import begins, ends_of, offsets, own_keys
from headgate.store.coverage import pieces, seams
from headgate.store.model import Range

WHOLE = Range("whole:a,b", "id1,id2", {}, {"onprem:0": 7, "onprem:1": 3, "cloud:0": 5})
NOW = datetime(2024, 1, 1, tzinfo=UTC)


def test_a_side_finds_its_own_offsets() -> None:
    assert own_keys(WHOLE, "onprem") == {"0": 7, "1": 3}
    assert own_keys(WHOLE, "cloud") == {"0": 5}


def test_where_records_expired_the_begin_is_kept_beside_the_end() -> None:
    topic = TopicState("t", "id", {0: 4, 1: 0}, {0: 9, 1: 2})
    ends = ends_of(topic)
    assert offsets(ends) == {"0": 9, "1": 2}
    assert begins(ends) == {"0": 4}


def test_a_whole_range_begins_anew_each_time_and_has_no_pieces() -> None:
    assert WHOLE.is_table
    assert WHOLE.starts_anew
    assert span(WHOLE) == 1
    assert pieces(WHOLE) == ()
    assert seams(()) == ()


def test_batch_times_rise_even_where_the_clock_was_set_back() -> None:
    later = NOW + timedelta(hours=1)
    assert later_than(None, NOW) == NOW
    assert later_than(NOW, later) == later
    assert later_than(later, NOW) == later + timedelta(microseconds=1)
