"""A figure that misses its goal stands in the table like one that meets it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from headgate.checks.goals import (
    BEGIN,
    END,
    Line,
    Machine,
    Measured,
    Result,
    Results,
    page_with,
    rows,
)
from headgate.errors import OperationError

MACHINE = Machine(cores=2, processor="x", memory_gib=8, java="Java 17", python="3.11", load=0.5)


def result(goal: str, *lines: Line) -> Result:
    measured = Measured(goal=goal, lines=lines)
    return Result(
        at=datetime(2026, 1, 1, tzinfo=UTC), quick=False, machine=MACHINE, measured=measured
    )


def test_losses_are_shown_like_wins() -> None:
    won = Line(what="a", figure=1.1, unit="×", limit=1.15)
    lost = Line(what="b", figure=20_000, unit="rows/s", limit=30_000, better="more")

    table = rows([result("P8", won, lost)])

    assert [(row["figure"], row["limit"], row["of limit"], row["verdict"]) for row in table] == [
        ("1.1 ×", "≤ 1.15 ×", "0.96", "met"),
        ("20,000 rows/s", "≥ 30,000 rows/s", "1.50", "missed"),
    ]


def test_goals_are_kept_in_the_order_of_their_numbers() -> None:
    results = Results()
    for goal in ("P15", "P8", "P12"):
        results = results.with_result(result(goal))
    assert list(results.results) == ["P8", "P12", "P15"]
    assert Results.model_validate_json(results.model_dump_json()) == results


def test_the_table_takes_its_place_in_the_page() -> None:
    page = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    assert page_with(page, "new") == f"before\n{BEGIN}\n\nnew\n\n{END}\nafter\n"
    with pytest.raises(OperationError):
        page_with("no marks", "new")
