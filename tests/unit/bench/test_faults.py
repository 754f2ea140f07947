"""Which kills are planned: the same for the same seed, all of them able to bite."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from bench.faults.bronze import (
    BRONZE_POINTS,
    PUBLISHED,
    Kill,
    KillHistory,
    load_history,
    plan_kill,
    save_history,
)

from headgate.core.engine.batch import Point


def planned(seed: int, count: int) -> KillHistory:
    """A run in which every kill bites."""
    history = KillHistory(seed=seed)
    for history.rounds in range(count):
        history.add(plan_kill(history))
    return history


def test_a_seed_plans_the_same_kills_and_another_seed_others() -> None:
    assert planned(1, 50) == planned(1, 50)
    assert planned(1, 50).kills != planned(2, 50).kills


def test_all_points_of_both_jobs_are_struck() -> None:
    points = Counter((kill.job, kill.point) for kill in planned(42, 200).kills)
    assert {point for job, point in points if job == "bronze"} == set(BRONZE_POINTS)
    assert {job for job, _ in points} == {"bronze", "silver"}
    assert min(points.values()) > 1


def test_silver_is_killed_only_over_rows_that_are_new_to_it() -> None:
    for last, kill in pairwise(planned(7, 300).kills):
        if kill.job == "silver":
            assert last.job == "bronze"
            assert last.point in PUBLISHED


def bronze(point: Point, time: int = 1) -> Kill:
    return Kill(number=1, job="bronze", point=point, time=time, records=1)


@pytest.mark.parametrize(
    ("kills", "published"),
    [
        ([], None),
        ([bronze(Point.MID_WRITE)], False),
        ([bronze(Point.AFTER_PUBLISH)], True),
        # While the published batch is being finished:
        ([bronze(Point.AFTER_PUBLISH), bronze(Point.AFTER_INTENT)], True),
        # It is finished, and the kill strikes the next one:
        ([bronze(Point.AFTER_PUBLISH), bronze(Point.AFTER_INTENT, 2)], False),
        ([bronze(Point.AFTER_PUBLISH), bronze(Point.AFTER_STAGING)], False),
    ],
)
def test_what_is_left_broken_is_known(kills: list[Kill], published: bool | None) -> None:
    history = KillHistory(seed=1)
    for kill in kills:
        history.add(kill)
    assert history.published is published


def test_a_run_of_kills_goes_on_where_it_stopped(tmp_path: Path) -> None:
    folder = tmp_path / "faults"
    history = load_history(folder, seed=1, kills=3)
    history.add(plan_kill(history))
    save_history(folder, history)
    assert load_history(folder, seed=1, kills=3) == history
    assert load_history(folder, seed=2, kills=3) == KillHistory(
        seed=2
    )  # another run clears it away
    assert not (folder / "state.json").exists()
