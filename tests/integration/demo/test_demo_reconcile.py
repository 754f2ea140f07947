"""`headgate demo reconcile` finds every planted key again; notebooks and SQL files answer on it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.project_clone import SECONDS, ProjectClone, clone_project

KEYS, SEED = 1_500, 11
HOME = ".headgate/demo-reconcile"
NOTES = ("business_onprem", "business_cloud", "business_reconcile")


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProjectClone]:
    with clone_project(tmp_path_factory.mktemp("demo"), HOME) as found:
        yield found


def typed(newcomer: ProjectClone, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [newcomer.root / ".venv/bin/headgate", *words],
        cwd=newcomer.root,
        env={**newcomer.environ, "HEADGATE_HOME": HOME},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


@pytest.fixture(scope="module")
def demo(newcomer: ProjectClone) -> dict[str, Any]:
    """One demo, left running for those who look at it."""
    planted = ("--keys", str(KEYS), "--seed", str(SEED), "--window", "60")
    print(f"seed {SEED}")
    done = typed(newcomer, "-o", "json", "demo", "reconcile", *planted, "--keep-running")
    assert done.returncode == 0, done.stderr[-6000:]
    return json.loads(done.stdout)


@pytest.mark.slow
def test_every_planted_key_is_found_and_nothing_else(demo: dict[str, Any]) -> None:
    assert demo["holds"]
    assert demo["wrong"] == []
    assert demo["keys"] > 0.98 * KEYS
    statuses = [line for line in demo["lines"] if line["subject"] == "keys"]
    assert {len(line["found"]) for line in statuses} == {5}
    assert len(statuses) == 10


@pytest.mark.slow
def test_the_page_and_its_json_are_written(demo: dict[str, Any]) -> None:
    page = Path(demo["report"])
    body = json.loads(page.with_suffix(".json").read_text("utf-8"))
    assert page.stat().st_size > 10_000
    assert body["adds_up"]
    assert body["keys"] == demo["keys"]
    assert {line["kind"] for line in body["kinds"]["lines"]} >= {"null_empty", "case", "real"}


@pytest.mark.slow
@pytest.mark.parametrize("note", NOTES)
def test_every_statement_of_the_sql_file_has_an_answer(
    note: str, demo: dict[str, Any], newcomer: ProjectClone
) -> None:
    assert demo["holds"]
    done = typed(newcomer, "-o", "json", "sql", "-f", f"notebooks/{note}.sql")
    assert done.returncode == 0, done.stderr[-3000:]
    answers = json.loads(done.stdout)["items"]
    assert len(answers) >= 5
    assert sum(bool(answer["rows"]) for answer in answers) >= 4


@pytest.mark.slow
@pytest.mark.parametrize("note", NOTES)
def test_every_cell_of_the_notebook_runs(
    note: str, demo: dict[str, Any], newcomer: ProjectClone, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert demo["holds"]
    monkeypatch.chdir(newcomer.root)
    monkeypatch.setenv("HEADGATE_HOME", HOME)
    book = json.loads((newcomer.root / "notebooks" / f"{note}.ipynb").read_text("utf-8"))
    names: dict[str, Any] = {}
    for cell in (cell for cell in book["cells"] if cell["cell_type"] == "code"):
        exec(compile("".join(cell["source"]), note, "exec"), names)
    assert "show" in names
    names["engine"].close()
    assert "SPARK_CONNECT_MODE_ENABLED" not in os.environ


@pytest.mark.slow
def test_a_second_report_tells_what_changed(demo: dict[str, Any], newcomer: ProjectClone) -> None:
    assert demo["holds"]
    done = typed(newcomer, "reconcile", "report", "business")
    assert done.returncode == 0, done.stderr[-3000:]
    assert "0 keys changed since" in done.stdout
