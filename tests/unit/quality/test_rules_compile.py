"""`headgate rules compile` and the documents' own command print the same SQL."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from headgate.quality.cli.compile import rules_compile

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def tool() -> Callable[[Sequence[str]], int]:
    spec = importlib.util.spec_from_file_location("rules_to_sql", ROOT / "tools/rules_to_sql.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.main


@pytest.mark.parametrize("arguments", [[], ["a", "b"]])
def test_the_tool_takes_exactly_one_argument(
    tool: Callable[[Sequence[str]], int],
    arguments: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert tool(arguments) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("usage: python tools/rules_to_sql.py RULES_FILE")


def test_the_tool_prints_what_the_command_prints(
    tool: Callable[[Sequence[str]], int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert tool([str(ROOT / "rules.yaml")]) == 0
    printed = capsys.readouterr().out
    told = CliRunner().invoke(rules_compile, [str(ROOT / "rules.yaml")])
    assert printed == told.output
    assert "CREATE OR REPLACE TEMPORARY VIEW dq_results_orders AS" in printed
    assert "${" not in printed


def test_a_fault_is_told_with_its_exit_code(
    tool: Callable[[Sequence[str]], int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "rules.yml"
    file.write_text("version: 2\ntables: []\n")
    assert tool([str(file)]) == 3
    said = capsys.readouterr()
    assert said.out == ""
    assert str(file) in said.err


def test_one_table_can_be_chosen() -> None:
    told = CliRunner().invoke(rules_compile, ["--table", "orders"])
    assert told.exit_code == 0
    assert "dq_results_customer" not in told.output
    assert "dq_results_orders" in told.output
