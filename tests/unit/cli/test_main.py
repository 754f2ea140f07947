"""The `headgate` command itself: misspelt nouns, and folders that are no project."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from headgate.app import NOUNS
from headgate.cli.main import cli
from headgate.errors import UsageError

# One command of each noun that needs the files or the home of a project.
IN_A_PROJECT = (
    "audit list", "certify", "config show", "connect build", "dataset list", "dataset show",
    "dbt build", "demo", "dlq list", "engine run", "feed sample", "filters check",
    "job list", "job run bronze", "keys list", "lake count", "ledger show", "local status",
    "local up", "maintain compact", "metrics show", "reconcile status x", "rules check", "rules list",
    "serve", "sql x", "topics create", "validate",
)  # fmt: skip


@pytest.mark.parametrize("command", IN_A_PROJECT)
def test_outside_a_project_a_command_says_so(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli, command.split())
    assert isinstance(result.exception, UsageError), result.output
    assert result.exception.what == "this is no Headgate project"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("noun", sorted(NOUNS))
def test_a_misspelt_noun_gets_a_suggestion(noun: str) -> None:
    result = CliRunner().invoke(cli, [noun + "x"])
    assert result.exit_code == 2
    assert "Did you mean" in result.output


def test_a_misspelt_verb_gets_a_suggestion() -> None:
    for words in (("rules", "chek"), ("dataset", "lst"), ("filters", "aprove")):
        assert "Did you mean" in CliRunner().invoke(cli, words).output
