"""How often all keys of a pair are counted: the more of them, the less often."""

from __future__ import annotations

from headgate.jobs.reconcile_standing import FEW_STATES, SECONDS, pause


def test_a_quick_count_is_made_every_few_seconds() -> None:
    assert pause(0.1, 1_000) == SECONDS


def test_of_few_states_counting_takes_a_tenth_of_the_time_at_most() -> None:
    assert pause(4.0, FEW_STATES) == 40.0


def test_of_many_states_it_takes_a_hundredth() -> None:
    assert pause(30.0, FEW_STATES + 1) == 3_000.0
