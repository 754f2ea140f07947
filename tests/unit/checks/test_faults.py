"""Which kills are planned: the same for the same seed, all of them able to bite."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path

from headgate.checks.faults import (
    PUBLISHED,
    Kill,
    State,
    keep_state,
    passes_again,
    plan,
    read_state,
)
from headgate.engine.faults import Point


def planned(seed: int, count: int) -> list[Kill]:
    kills: list[Kill] = []
    for number in range(count):
        kills.append(plan(seed, number, kills[-1] if kills else None))
    return kills


def test_a_seed_plans_the_same_kills_and_another_seed_others() -> None:
    assert planned(1, 50) == planned(1, 50)
    assert planned(1, 50) != planned(2, 50)


def test_all_points_of_both_jobs_are_struck() -> None:
    points = Counter((kill.job, kill.point) for kill in planned(42, 200))
    assert {point for job, point in points if job == "bronze"} == set(Point)
    assert {job for job, _ in points} == {"bronze", "silver"}
    assert min(points.values()) > 1


def test_no_kill_is_planned_that_could_not_bite() -> None:
    kills = planned(7, 300)
    for last, kill in pairwise(kills):
        if kill.job == "silver":  # it needs rows that silver has not seen
            assert last.job == "bronze"
            assert last.point in PUBLISHED
        else:
            assert kill.records > 0
            assert kill.time == 1 or passes_again(last, kill.point)


def test_a_run_of_kills_goes_on_where_it_stopped(tmp_path: Path) -> None:
    folder = tmp_path / "faults"
    state = read_state(folder, seed=1, kills=3)
    state.kills.append(plan(1, 0, None))
    keep_state(folder, state)
    assert read_state(folder, seed=1, kills=3) == state
    assert read_state(folder, seed=2, kills=3) == State(seed=2)  # another run clears it away
    assert not (folder / "state.json").exists()
