"""Merging states: in any order, any grouping, any number of times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.reconcile.state import DELETE, Reading, State, merge, merge_all, of_message

pytestmark = pytest.mark.heavy

START = datetime(2024, 1, 1, tzinfo=UTC)
MOMENTS = st.integers(0, 3).map(lambda seconds: START + timedelta(seconds=seconds))


@st.composite
def messages(draw: st.DrawFn) -> list[State]:
    """Messages of one key; a place on a topic has one message."""
    places = draw(
        st.lists(
            st.tuples(st.sampled_from(["onprem", "cloud"]), st.integers(0, 1), st.integers(0, 3)),
            unique=True,
            min_size=1,
            max_size=8,
        )
    )
    return [
        of_message(
            side,  # pyright: ignore[reportArgumentType]  one of the two
            "k",
            Reading(
                version=draw(MOMENTS),
                partition=partition,
                offset=offset,
                hash=draw(st.sampled_from(["a", "b", None])),
                hash_version=draw(st.sampled_from([None, 1, 2])),
                action=draw(st.sampled_from([None, "UPSERT", "DELETE"])),
                read_at=draw(MOMENTS),
            ),
        )
        for side, partition, offset in places
    ]


@given(messages(), st.randoms(use_true_random=False))
def test_the_order_of_messages_does_not_matter(parts: list[State], random: object) -> None:
    shuffled = list(parts)
    random.shuffle(shuffled)  # pyright: ignore[reportAttributeAccessIssue]  a random.Random
    assert merge_all(shuffled) == merge_all(parts)


@given(messages(), st.data())
def test_neither_does_how_they_are_cut(parts: list[State], data: st.DataObject) -> None:
    cut = data.draw(st.integers(1, len(parts)))
    left, right = parts[:cut], parts[cut:]
    whole = merge(merge_all(left), merge_all(right)) if right else merge_all(left)
    assert whole == merge_all(parts)


@given(messages(), st.data())
def test_what_comes_twice_changes_nothing(parts: list[State], data: st.DataObject) -> None:
    again = data.draw(st.lists(st.sampled_from(parts)))
    assert merge_all([*parts, *again]) == merge_all(parts)


@given(messages())
def test_the_newest_version_wins_and_its_first_arrival_gives_the_times(parts: list[State]) -> None:
    found = merge_all(parts)
    for side in ("onprem", "cloud"):
        merged, own = found.side(side), [part.side(side) for part in parts if part.side(side)]
        if merged is None:
            assert not own
            continue
        readings = [one.newest for one in own if one]
        newest = max(reading.version for reading in readings)
        same = [reading for reading in readings if reading.version == newest]
        assert merged.newest.version == merged.first.version == newest
        assert merged.first.read_at == min(reading.read_at for reading in same)
        assert merged.end == max((reading.partition, reading.offset) for reading in readings)


@given(messages())
def test_a_conflict_is_told_of_any_two_things_that_the_newest_version_says(
    parts: list[State],
) -> None:
    """Whichever came first or last: also of a hash that was said before and after another."""
    found = merge_all(parts)
    for side in ("onprem", "cloud"):
        merged, own = found.side(side), [part.side(side) for part in parts if part.side(side)]
        if merged is None:
            continue
        same = {
            (one.newest.hash, one.newest.action == DELETE, one.newest.hash_version)
            for one in own
            if one and one.newest.version == merged.newest.version
        }
        assert (len(merged.told) > 1) == (len(same) > 1)
        assert set(merged.told) <= same
