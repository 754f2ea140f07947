"""A step is one line; what it says goes to its log, and comes out only when it fails."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from headgate.errors import OperationError
from headgate.terminal.steps import Steps, took, wait_for


def test_a_step_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    steps = Steps(tmp_path, "demo", 8)
    with steps.step("bronze") as step:
        print("much talk")
        print("more talk", file=sys.stderr)
        step.words = "all well"

    shown = capsys.readouterr()
    assert shown.out == ""
    assert re.fullmatch(r"  ✓ bronze +[0-9.]+ s  all well\n", shown.err)
    assert (tmp_path / "demo-bronze.log").read_text() == "much talk\nmore talk\n"
    assert [(taken.name, taken.words) for taken in steps.taken] == [("bronze", "all well")]


def test_a_step_that_found_a_difference_is_marked_and_the_command_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = Steps(tmp_path, "demo", 8)
    with steps.step("compare") as step:
        step.words, step.holds = "1 sum is not as planted", False

    assert capsys.readouterr().err.split()[:2] == ["✗", "compare"]
    assert [(taken.name, taken.holds) for taken in steps.taken] == [("compare", False)]


def fail() -> None:
    print("\n".join(str(n) for n in range(100)))
    raise RuntimeError


def test_a_failed_step_shows_the_end_of_its_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = Steps(tmp_path, "demo", 8)
    with pytest.raises(RuntimeError), steps.step("bronze"):
        fail()

    shown = capsys.readouterr().err.splitlines()
    assert shown[0].split()[:2] == ["✗", "bronze"]
    assert [line.strip() for line in shown[1:]] == [str(n) for n in range(85, 100)]
    assert steps.taken == []


def test_what_does_not_move_is_said_with_its_last_words(tmp_path: Path) -> None:
    steps = Steps(tmp_path, "demo", 10)
    with pytest.raises(OperationError, match="nothing moves: 3 of 4"), steps.step("wait") as step:
        wait_for(lambda: False, lambda: "3 of 4", step, patience=0)
    with steps.step("done") as step:
        wait_for(lambda: True, lambda: "", step, patience=0)
    assert [taken.name for taken in steps.taken] == ["done"]


def test_downloads_and_memory_are_told_where_there_were_any() -> None:
    assert took(12.4, 0.3) == "12 s"
    assert took(12.4, 70.2, 2355) == (
        "12 s, fetching jars not counted (70 s), 2.3 GiB of memory at most"
    )
