"""`python -m bench`: its help, the commands that documents show, and arguments that are refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from bench.cli import cli, parse_values
from click.testing import CliRunner

from headgate.errors import UsageError

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
COMMAND = re.compile(r"python -m bench (?:-o \w+ )?([a-z][a-z-]*)")


def test_the_help_lists_every_command() -> None:
    text = CliRunner().invoke(cli, ["--help"]).output
    assert all(f"  {name} " in text for name in cli.commands)
    assert set(COMMAND.findall(text)) <= set(cli.commands)


@pytest.mark.parametrize("name", sorted(cli.commands))
def test_every_command_has_examples_of_itself(name: str) -> None:
    text = CliRunner().invoke(cli, [name, "--help"]).output
    assert "Examples:" in text
    assert set(COMMAND.findall(text)) == {name}


def test_every_command_that_a_page_shows_exists() -> None:
    shown = {name for page in PAGES for name in COMMAND.findall(page.read_text("utf-8"))}
    assert "run" in shown
    assert shown <= set(cli.commands)


def test_no_page_shows_a_command_of_before() -> None:
    assert not [page for page in PAGES if "headgate bench" in page.read_text("utf-8")]


def test_arguments_of_a_benchmark_are_whole_numbers() -> None:
    assert parse_values(["rows=20000", "repeat=1"]) == {"rows": 20_000, "repeat": 1}
    for wrong in ("rows", "rows=", "rows=many", "=1", "rows=-1"):
        with pytest.raises(UsageError):
            parse_values([wrong])


@pytest.mark.parametrize(
    "words", [("run", "P99"), ("measure", "P99"), ("filter-faults", "--only", "x")]
)
def test_a_name_that_is_not_known_is_refused(words: tuple[str, ...]) -> None:
    result = CliRunner().invoke(cli, words)
    assert isinstance(result.exception, UsageError)
