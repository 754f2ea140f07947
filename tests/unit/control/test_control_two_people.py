"""N4: there is no path from an edit to something that runs without a second person."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test
from tests.unit.control.control_room import make_database
from tests.unit.control.control_walk import Walk


def walked(folder: Path, steps: int, walks: int, length: int) -> Counter[str]:
    """How often what was done in so many steps or more."""
    Walk.made = make_database(folder / "made.db")
    Walk.did.clear()
    while Walk.did["tried"] < steps:
        run_state_machine_as_test(
            Walk,
            settings=settings(
                max_examples=walks,
                stateful_step_count=length,
                deadline=None,
                database=None,
                suppress_health_check=[
                    HealthCheck.too_slow,
                    HealthCheck.data_too_large,
                    HealthCheck.filter_too_much,
                ],
            ),
        )
    return Walk.did


def test_no_random_walk_gets_an_edit_live_without_a_second_person(tmp_path: Path) -> None:
    did = walked(tmp_path, steps=500, walks=12, length=50)
    assert did["tried"] >= 500


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_no_long_random_walk_does_either(tmp_path: Path) -> None:
    did = walked(tmp_path, steps=25_000, walks=50, length=100)
    assert did["tried"] >= 25_000
    assert min(did[name] for name in ("deploy", "rollback", "resume", "killed")) > 10
