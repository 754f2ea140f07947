"""docs/03 is followed to the letter: its commands are taken from the page and run as they stand.

Once with the file that the page makes, and with files that nobody here has written: there, only the
dataset's name is another.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.nycflights import write_nycflights_table
from tests.support.project_clone import ROOT, ProjectClone, clone_project, read_steps, steps_up_to

PAGE = ROOT / "docs" / "03_add_new_dataset.md"
NAME_ON_THE_PAGE = "rides"
MAKES_THE_FILE, CERTIFIES = "A file", "Certify"


@pytest.fixture
def newcomer(tmp_path: Path) -> Iterator[ProjectClone]:
    with clone_project(tmp_path) as found:
        yield found


@pytest.mark.slow
def test_rides_go_from_a_file_to_a_certificate_as_the_page_says(newcomer: ProjectClone) -> None:
    newcomer.run_steps(steps_up_to(read_steps(PAGE), CERTIFIES))
    account = newcomer.newest_account(NAME_ON_THE_PAGE)
    assert account["holds"]
    sums = account["sums"]
    assert (sums["read"], sums["kept"]) == (20_200, 19_200)
    assert (sums["refused"], sums["duplicates"], sums["filtered"]) == (0, 200, 800)


@pytest.mark.slow
def test_the_page_is_right_to_its_last_line(newcomer: ProjectClone) -> None:
    newcomer.run_steps(read_steps(PAGE))
    account = newcomer.newest_account(NAME_ON_THE_PAGE)
    assert account["holds"]
    assert account["sums"]["read"] == 20_203
    assert "tip" in account["tables"]["bronze"]["columns"]


@pytest.mark.slow
def test_tables_of_others_follow_the_page_with_nothing_but_their_names(
    newcomer: ProjectClone,
) -> None:
    (newcomer.root / "data").mkdir()
    steps = [
        step for step in steps_up_to(read_steps(PAGE), CERTIFIES) if step.section != MAKES_THE_FILE
    ]
    for name, rows in {"weather": 26_115, "flights": 336_776}.items():
        write_nycflights_table(name, newcomer.root / "data" / f"{name}.parquet")
        newcomer.run_steps(steps, name, NAME_ON_THE_PAGE)
        account = newcomer.newest_account(name)
        assert account["holds"]
        assert account["sums"]["read"] == rows
        assert account["sums"]["kept"] > 0
