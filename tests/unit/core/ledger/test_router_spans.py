from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headgate.core.ledger.offset_ranges import (
    Spans,
    between,
    blocks,
    each,
    first,
    merged,
    minus,
    size,
    union,
)

SPAN = st.tuples(st.sampled_from("01"), st.integers(0, 30), st.integers(0, 30))
SPANS = st.lists(SPAN, max_size=6).map(merged)


def offsets(spans: Spans) -> set[tuple[str, int]]:
    return {(p, n) for p, start, end in each(spans) for n in range(start, end)}


def test_a_partition_without_a_start_is_taken_from_its_beginning() -> None:
    found = between({"0": 5, "1": 7}, {"0": 9, "1": 7, "2": 3})
    assert found == {"0": [(5, 9)], "2": [(0, 3)]}


@given(SPANS, SPANS)
def test_spans_behave_as_the_sets_of_their_offsets(one: Spans, other: Spans) -> None:
    assert offsets(minus(one, other)) == offsets(one) - offsets(other)
    assert offsets(union(one, other)) == offsets(one) | offsets(other)
    assert size(one) == len(offsets(one))


@given(SPANS, st.integers(1, 20))
def test_blocks_and_first_parts_leave_nothing_out(spans: Spans, most: int) -> None:
    rebuilt = [(p, start[p], end[p]) for start, end in blocks(spans) for p in end]
    assert offsets(merged(rebuilt)) == offsets(spans)
    taken, rest, rounds = first(spans, most), spans, 0
    while rest:
        assert offsets(taken) <= offsets(rest)
        rest, rounds = minus(rest, taken), rounds + 1
        taken = first(rest, most)
    assert rounds <= len(offsets(spans))
