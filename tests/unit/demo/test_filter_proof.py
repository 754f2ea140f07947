"""The proof of a filter: gaps, overlaps and unequal counts are found, and a whole one reads well."""

from __future__ import annotations

import pytest

from headgate.demo.filters.proof import Counts, FilterProof, lanes_of, text
from headgate.filters.store.model import Routed, RoutedRange

VERSIONS = {"r1": "v1", "r2": "v2"}


def piece(start: int, end: int, revision: str = "r1", job: str = "router-raw") -> RoutedRange:
    return RoutedRange(job, revision, "kafka:raw", "id", "0", start, end)


def lane(*pieces: RoutedRange, end: int):
    (found,) = lanes_of(Routed("f", tuple(pieces)), {"0": end}, VERSIONS)
    return found


def test_pieces_of_one_revision_are_one_stretch():
    found = lane(piece(10, 20), piece(0, 10), end=20)
    assert (found.line(), found.fault) == ("0 ──v1── 20", "")


def test_a_change_of_revision_and_a_replay_are_shown():
    found = lane(piece(0, 5), piece(5, 7, "r2"), piece(7, 9, "r1", "replay-f"), end=9)
    assert found.line() == "0 ──v1── 5 ──v2── 7 ══v1══ 9"
    assert found.fault == ""


@pytest.mark.parametrize(
    ("pieces", "end", "fault"),
    [
        ((piece(0, 5), piece(6, 9)), 9, "offsets 5 to 6 were judged by nobody"),
        ((piece(0, 5), piece(4, 9)), 9, "offsets 4 to 5 were judged twice"),
        ((piece(0, 5),), 9, "judged up to 5 of 9"),
        ((piece(2, 9),), 9, "judged from 2 on, and not from 0"),
        ((), 9, "never judged"),
    ],
)
def test_what_is_not_whole_is_said(pieces: tuple[RoutedRange, ...], end: int, fault: str):
    assert lane(*pieces, end=end).fault == fault


def test_an_empty_partition_is_whole():
    assert lane(end=0).fault == ""


@pytest.mark.parametrize(
    ("counts", "holds"),
    [
        (Counts(expected=3, ledger=3, topic=3, consumer=3), True),
        (Counts(expected=3, ledger=4, topic=4, consumer=3, repeats=1), True),
        (Counts(expected=3, ledger=4, topic=4, consumer=3), False),
        (Counts(expected=3, ledger=4, topic=3, consumer=3), False),
        (Counts(expected=3, ledger=3, topic=3, consumer=2), False),
        (Counts(expected=3, ledger=3, topic=3, consumer=4), False),
        (Counts(expected=3, ledger=2, topic=2, consumer=3), False),
    ],
)
def test_places_that_count_otherwise_do_not_hold(counts: Counts, holds: bool):
    assert counts.holds is holds


def test_the_proof_reads_well_and_names_what_is_wrong():
    good = FilterProof("first", (lane(piece(0, 9), end=9),), Counts(3, 3, 3, 3))
    bad = FilterProof("second", (lane(piece(0, 5), end=9),), Counts(3, 3, 3, 2), ("e-1",), ("e-2",))
    told = text([good, bad], {"routed": 6, "unrouted": 3, "refused": 0}, "raw")
    assert "9 records read = 6 routed + 3 unrouted" in told
    assert "first: no gap, no overlap" in told
    assert "second: NOT WHOLE" in told
    assert good.faults == ()
    assert [words.partition(":")[2] for words in bad.faults][-2:] == [
        " its consumer lacks e-1",
        " its topic or consumer has e-2",
    ]
