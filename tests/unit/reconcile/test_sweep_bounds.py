"""A round of shards: every waiting key once, numbers that only rise, and no batch left out behind it."""

from __future__ import annotations

from itertools import pairwise

from headgate.core.ledger.ranges import SweepRange, parse_range, stored_range
from headgate.reconcile.job.sweep_bounds import (
    SweepBounds,
    SweepProgress,
    SweepTimes,
    sweep_bounds,
)


def range_of(start: SweepProgress, end: SweepProgress) -> SweepRange:
    range_ = SweepRange("states", "id", start.counters, end.counters)
    assert parse_range(**stored_range(range_)) == range_
    return range_


def play(
    progress: SweepProgress, at: int, shards: int
) -> tuple[list[SweepBounds], list[SweepProgress]]:
    """A round, each shard of which comes ten later, with batches going on."""
    ends = [progress, progress.after_first_shard(SweepTimes(at, at - 1), shards)]
    while ends[-1].is_amid_round:
        at += 10
        ends.append(ends[-1].after_next_shard(SweepTimes(at, at - 1)))
    return [sweep_bounds(range_of(*pair)) for pair in pairwise(ends)], ends


def test_a_round_takes_every_shard_of_one_goal() -> None:
    sweeps, _ = play(SweepProgress(50, 40), 100, 3)
    assert [(sweep.shard, sweep.of) for sweep in sweeps] == [(0, 3), (1, 3), (2, 3)]
    assert {(sweep.since, sweep.batches, sweep.until) for sweep in sweeps} == {(50, 40, 100)}
    # A shard knows what batches have written since: else it would publish what is no longer so.
    assert [sweep.at for sweep in sweeps] == [100, 110, 120]


def test_only_the_end_of_a_round_moves_on_and_to_where_it_began() -> None:
    _, ends = play(SweepProgress(50, 40), 100, 3)
    assert [end.times for end in ends] == [(50, 40), (50, 40), (50, 40), (100, 99)]


def test_numbers_only_rise_through_rounds_and_single_sweeps() -> None:
    _, first = play(SweepProgress(), 100, 2)
    single = first[-1].after_single(SweepTimes(200, 190), first[-1].times)
    assert not single.is_amid_round
    assert sweep_bounds(range_of(first[-1], single)) == SweepBounds(100, 99, 200, 200)
    _, second = play(single, 300, 4)
    whole = [*first, *second]
    for before, after in pairwise(whole):
        assert all(after.counters[key] >= value for key, value in before.counters.items())


def test_a_sweep_done_again_leaves_out_what_was_examined_in_vain() -> None:
    last, now = SweepProgress(50, 40), SweepTimes(100, 90)
    end = last.after_single(now, SweepTimes(95, 85))
    assert sweep_bounds(range_of(last, end)) == SweepBounds(95, 85, 100, 100)
    # The next one begins where this one ended, also behind a round, which examines all since then.
    after = end.after_single(SweepTimes(120, 110), now)
    assert sweep_bounds(range_of(end, after)) == SweepBounds(100, 90, 120, 120)
    sweeps, rounds = play(end, 200, 2)
    assert {(sweep.since, sweep.batches) for sweep in sweeps} == {(100, 90)}
    behind = rounds[-1].after_single(SweepTimes(300, 290), SweepTimes())
    assert sweep_bounds(range_of(rounds[-1], behind)) == SweepBounds(200, 199, 300, 300)


def test_the_end_of_the_input_examines_every_key_that_still_waits() -> None:
    last, now = SweepProgress(50, 40), SweepTimes(100, 90)
    end = last.after_end_of_input(now)
    assert sweep_bounds(range_of(last, end)) == SweepBounds(100, 90, 100, 100, ended=True)


def test_a_first_sweep_is_a_whole_one() -> None:
    first = sweep_bounds(range_of(SweepProgress(), SweepProgress(9, 8)))
    assert first == SweepBounds(0, 0, 9, 9)
    assert first.shard_condition == "TRUE"
