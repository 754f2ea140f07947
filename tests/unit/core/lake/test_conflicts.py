"""A commit that lost a race is tried again, with pauses; nothing else is."""

from __future__ import annotations

import pytest

from headgate.core.lake.commits import (
    LONGEST,
    TRIES,
    TableMovedError,
    lost_race,
    moved,
    persistently,
    until_unmoved,
    writing_to,
)


class Step:
    """Fails so many times, then gives its number of tries."""

    def __init__(self, failures: int, error: Exception) -> None:
        self.left, self.error, self.tries = failures, error, 0

    def __call__(self) -> int:
        self.tries += 1
        if self.tries <= self.left:
            raise self.error
        return self.tries


def test_a_step_is_run_again_whole_until_the_table_stays_where_it_is() -> None:
    pauses: list[float] = []
    assert until_unmoved(Step(5, moved("t")), pauses.append) == 6
    assert len(pauses) == 5
    assert all(0 <= pause <= LONGEST for pause in pauses)


def test_a_table_that_never_stays_is_given_up() -> None:
    step = Step(10**6, moved("t"))
    with pytest.raises(TableMovedError, match="t changed while the batch was written"):
        until_unmoved(step, lambda _: None)
    assert step.tries == TRIES


def test_another_failure_is_not_tried_again() -> None:
    step = Step(1, ValueError("no"))
    with pytest.raises(ValueError, match="no"):
        persistently(step, lost_race, lambda _: None)
    assert step.tries == 1


@pytest.mark.parametrize("sign", ["CommitFailedException", "ValidationException"])
def test_a_conflict_inside_a_statement_means_that_the_table_moved(sign: str) -> None:
    with pytest.raises(TableMovedError), writing_to("t"):
        raise RuntimeError(f"org.apache.iceberg.exceptions.{sign}: Found conflicting files")
    with pytest.raises(RuntimeError, match="disk full"), writing_to("t"):
        raise RuntimeError("disk full")
