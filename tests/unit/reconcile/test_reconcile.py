"""`headgate reconcile`: the decision table, and what is refused before anything is read."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headgate.cli.main import cli
from headgate.config.settings import load_settings
from headgate.demo.reconcile.cli import ReconcileDemo, difference
from headgate.errors import UsageError
from headgate.quality.spec.reconcile_checks import Limits
from headgate.reconcile.cli.verdicts import pair_limits, pairs_of
from headgate.reconcile.decision_table import decisions
from headgate.terminal.steps import StepReport

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def here(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for folder in ("rules", "contracts"):
        shutil.copytree(ROOT / folder, project / folder)
    shutil.copy(ROOT / "rules.yaml", project / "rules.yaml")
    monkeypatch.chdir(project)
    return project


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["reconcile", *arguments])


def test_the_decision_table_is_shown_as_it_decides() -> None:
    found = json.loads(CliRunner().invoke(cli, ["-o", "json", "reconcile", "decisions"]).stdout)
    assert [row["status"] for row in found["items"]] == [row.status for row in decisions()]
    assert found["items"][0]["when"] == decisions()[0].when


def test_its_facts_are_shown_in_words() -> None:
    text = run("decisions", "--facts").stdout
    assert "the cloud was read, and has no row or no hash" in text


def test_a_table_with_one_source_has_no_history() -> None:
    result = run("history", "taxi", "C-1")
    assert isinstance(result.exception, UsageError)
    assert "`taxi` is not reconciled" in str(result.exception)
    assert result.exception.fix == "headgate rules report taxi"


def test_an_unknown_table_is_refused_with_those_there_are() -> None:
    result = run("status", "busines")
    assert isinstance(result.exception, UsageError)
    assert "business" in result.exception.fix


def test_pairs_are_found_with_their_limits() -> None:
    settings = load_settings()
    assert sorted(pairs_of(settings)) == ["business", "customer", "orders"]
    assert pair_limits(settings, "business") == Limits()


def test_a_step_that_does_not_hold_is_told_as_a_difference() -> None:
    steps = (
        StepReport("compare", 1.0, "1 sum is not as planted", holds=False),
        StepReport("tell", 1.0, "caught up"),
    )
    report = ReconcileDemo("home", 1.0, 0.0, None, False, 3, (), (), steps, "page", "certificate")
    assert difference(report).why == "step compare: 1 sum is not as planted"
