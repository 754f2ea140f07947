"""`headgate local down`: what goes is listed, and nothing goes unasked."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headgate.cli.main import cli
from headgate.terminal import console as asking


@pytest.fixture
def home(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a topic, a table and a file that is no service's."""
    found = project / "a home"
    for folder in ("kafka", "warehouse"):
        (found / folder).mkdir(parents=True)
    for file in ("catalog.db", "notes.txt"):
        (found / file).write_text("x")
    monkeypatch.chdir(project)
    monkeypatch.setenv("HEADGATE_HOME", str(found))
    return found


def down(*options: str, answer: str = "") -> Result:
    return CliRunner().invoke(cli, ["local", "down", *options], input=answer, standalone_mode=False)


def names(home: Path) -> list[str]:
    return sorted(path.name for path in home.iterdir() if path.suffix != ".lock")


def test_data_are_kept_and_that_is_said(home: Path) -> None:
    done = down()
    assert f"the data are kept in {home}" in done.output
    assert names(home) == ["catalog.db", "kafka", "notes.txt", "warehouse"]


def test_what_goes_is_listed_and_nothing_else_goes(home: Path) -> None:
    done = down("--remove-data", "--yes")
    listed = [line.strip() for line in done.output.splitlines() if line.startswith("  ")]
    assert listed == ["catalog.db", "kafka/", "warehouse/"]
    assert names(home) == ["notes.txt"]
    assert "this removes" not in down("--remove-data").output


@pytest.mark.parametrize(("answer", "left"), [("n\n", 4), ("\n", 4), ("y\n", 1)])
def test_a_terminal_is_asked(
    home: Path, monkeypatch: pytest.MonkeyPatch, answer: str, left: int
) -> None:
    monkeypatch.setattr(asking, "need_terminal", lambda *_: None)
    assert "Remove them?" in down("--remove-data", answer=answer).output
    assert len(names(home)) == left


def test_without_a_terminal_nothing_goes_unless_yes_is_given(home: Path) -> None:
    done = down("--remove-data")
    assert "needs --yes here" in str(done.exception)
    assert len(names(home)) == 4
