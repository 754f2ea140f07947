"""A figure that misses its goal stands in the table like one that meets it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from bench.goals import (
    BEGIN,
    END,
    GOALS,
    Failure,
    Figure,
    Machine,
    Measurement,
    Result,
    choose_goals,
    describe_run,
    insert_table,
    render_rows,
)

from headgate.errors import OperationError, UsageError

MACHINE = Machine(cores=2, processor="x", memory_gib=8, java="Java 17", python="3.11", load=0.5)


def make_result(goal: str, *figures: Figure) -> Result:
    return Result(
        goal=goal,
        size="full",
        commit="abc1234",
        state="abc",
        measured_at=datetime(2026, 1, 1, tzinfo=UTC),
        seconds=61.2,
        machine=MACHINE,
        measurement=Measurement(figures=figures),
    )


def test_misses_are_shown_like_figures_that_meet_their_target() -> None:
    met = Figure.of_ratio("a", 1.1, 1.0, 1.15)
    missed = Figure(what="b", value=20_000, unit="rows/s", target=30_000, better="more")

    rows = render_rows([make_result("P8", met, missed)])

    assert [tuple(row.values()) for row in rows] == [
        ("P8", "a", "≤ 1.15 ×", "1.1 × (1.10 to 1.00 CPU s)", "met", "61"),
        ("P8", "b", "≥ 30,000 rows/s", "20,000 rows/s", "missed", ""),
    ]


def test_a_benchmark_that_broke_has_a_row_with_the_reason() -> None:
    (goal,) = choose_goals(["P8"])
    (row,) = render_rows([Failure(goal, "broke with exit code 3", 12.0)])
    assert list(row.values()) == ["P8", goal.what, "", "", "broke with exit code 3", "12"]


def test_figures_of_a_tiny_run_are_not_judged() -> None:
    tiny = make_result("P8", Figure.of_ratio("a", 9.0, 1.0, 1.15)).model_copy(
        update={"size": "tiny"}
    )
    assert [row["verdict"] for row in render_rows([tiny])] == ["tiny"]


def test_goals_are_measured_in_the_order_of_their_numbers() -> None:
    assert [goal.id for goal in choose_goals(["p15", "P8"])] == ["P8", "P15"]
    assert choose_goals([]) == GOALS
    assert [goal.id for goal in GOALS] == sorted((g.id for g in GOALS), key=lambda i: int(i[1:]))


def test_a_goal_without_a_benchmark_is_refused_with_those_that_have_one() -> None:
    with pytest.raises(UsageError) as caught:
        choose_goals(["P6", "P99"])
    assert caught.value.what == "there is no benchmark for P99"
    assert "P6" in caught.value.fix


def test_the_table_takes_its_place_in_the_page() -> None:
    page = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    assert insert_table(page, "new") == f"before\n{BEGIN}\n\nnew\n\n{END}\nafter\n"
    with pytest.raises(OperationError):
        insert_table("no marks", "new")


def test_a_result_survives_its_file_and_names_day_commit_and_machine() -> None:
    result = make_result("P8")
    assert Result.model_validate_json(result.model_dump_json()) == result
    assert describe_run([result]) == (
        "Measured on 2026-01-01 at commit abc1234: 2 cores (x), 8 GiB, Java 17, Python 3.11;"
        " load average 0.5 before it began."
    )
