"""The driver's JVM is watched: its end is noticed, and told in words that say what to do."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable
from typing import Any, cast

import pytest

from headgate.core.engine.controller import Driver


class Process:
    """Stands in for the JVM's process; its exit code is None while it runs."""

    def __init__(self, code: int | None) -> None:
        self.code = code

    def poll(self) -> int | None:
        return self.code

    def wait(self, seconds: float) -> int:
        if self.code is None:
            raise subprocess.TimeoutExpired("java", seconds)
        return self.code


def driver_of(code: int | None, answers: Callable[[], bool]) -> Driver:
    return Driver(cast("Any", Process(code)), answers, "2g")


def refuse() -> bool:
    raise ConnectionRefusedError(111, "Connection refused")


def test_a_driver_that_works_is_not_lost() -> None:
    driver = driver_of(None, lambda: True)
    assert not driver.is_lost()
    assert not driver.has_failed()


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (-signal.SIGKILL, "was killed by signal 9"),
        (3, "ran out of memory (heap 2g)"),
        (1, "ended with exit code 1"),
        (0, "ended with exit code 0"),
    ],
)
def test_the_end_of_the_process_is_noticed_and_explained(code: int, words: str) -> None:
    driver = driver_of(code, refuse)
    assert driver.is_lost()
    assert driver.has_failed()
    loss = driver.loss()
    assert words in loss.what
    assert loss.why
    assert loss.fix
    assert (loss.exit_code, loss.retryable) == (8, True)


def test_out_of_memory_names_the_setting_to_raise() -> None:
    assert "raise SPARK_DRIVER_MEMORY" in driver_of(3, refuse).loss().fix


@pytest.mark.parametrize("answers", [refuse, lambda: False])
def test_a_driver_that_answers_no_more_is_lost_for_good(answers: Callable[[], bool]) -> None:
    driver = driver_of(None, answers)
    assert not driver.is_lost(), "nobody has called into it yet"
    assert driver.has_failed()
    assert driver.is_lost()
    assert "answers no more" in driver.loss().what
