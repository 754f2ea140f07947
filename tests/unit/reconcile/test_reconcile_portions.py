"""A round of portions: every waiting key once, numbers that only rise, and no batch left out behind it."""

from __future__ import annotations

from itertools import pairwise

from headgate.core.ledger.model import TABLE_SOURCE, Range
from headgate.reconcile.job.sweep_bounds import (
    BATCHES,
    UNTIL,
    Ends,
    Look,
    is_amid_round,
    look_of,
    next_ends,
    round_ends,
    single_ends,
)


def range_of(start: Ends, end: Ends) -> Range:
    begin = {key: start.get(key, 0) for key in end}
    return Range(f"{TABLE_SOURCE}states", "id", begin, dict(end))


def play(reached: Ends, at: int, portions: int) -> tuple[list[Look], list[Ends]]:
    """A round, each portion of which comes ten later, with batches going on."""
    ends: list[Ends] = [reached, round_ends(reached, {UNTIL: at, BATCHES: at - 1}, portions)]
    while is_amid_round(ends[-1]):
        at += 10
        ends.append(next_ends(ends[-1], {UNTIL: at, BATCHES: at - 1}))
    return [look_of(range_of(*pair)) for pair in pairwise(ends)], ends


def test_a_round_takes_every_portion_of_one_goal() -> None:
    looks, _ = play({UNTIL: 50, BATCHES: 40}, 100, 3)
    assert [(look.portion, look.of) for look in looks] == [(0, 3), (1, 3), (2, 3)]
    assert {(look.since, look.batches, look.until) for look in looks} == {(50, 40, 100)}
    # A portion knows what batches have said since: else it would tell what is no longer so.
    assert [look.at for look in looks] == [100, 110, 120]


def test_only_the_end_of_a_round_moves_on_and_to_where_it_began() -> None:
    _, ends = play({UNTIL: 50, BATCHES: 40}, 100, 3)
    assert [(end[UNTIL], end[BATCHES]) for end in ends] == [(50, 40), (50, 40), (50, 40), (100, 99)]


def test_numbers_only_rise_through_rounds_and_single_sweeps() -> None:
    _, first = play({}, 100, 2)
    now = {UNTIL: 200, BATCHES: 190}
    single = single_ends(first[-1], now, first[-1])
    assert not is_amid_round(single)
    assert look_of(range_of(first[-1], single)) == Look(100, 99, 200, 200)
    _, second = play(single, 300, 4)
    whole = [*first, *second]
    for before, after in pairwise(whole):
        assert all(after[key] >= value for key, value in before.items())


def test_a_sweep_done_again_leaves_out_what_was_looked_at_in_vain() -> None:
    last, now = {UNTIL: 50, BATCHES: 40}, {UNTIL: 100, BATCHES: 90}
    ends = single_ends(last, now, {UNTIL: 95, BATCHES: 85})
    assert look_of(range_of(last, ends)) == Look(95, 85, 100, 100)
    # The next one begins where this one ended, also behind a round, which looks at all since then.
    after = single_ends(ends, {UNTIL: 120, BATCHES: 110}, now)
    assert look_of(range_of(ends, after)) == Look(100, 90, 120, 120)
    looks, rounds = play(ends, 200, 2)
    assert {(look.since, look.batches) for look in looks} == {(100, 90)}
    behind = {**rounds[-1], UNTIL: 300, BATCHES: 290}
    assert look_of(range_of(rounds[-1], behind)) == Look(200, 199, 300, 300)


def test_a_sweep_from_before_there_were_portions_is_a_whole_one() -> None:
    end = {UNTIL: 9, BATCHES: 8}
    assert look_of(range_of({}, end)) == Look(0, 0, 9, 9)
    assert look_of(range_of({}, end)).own == "TRUE"
