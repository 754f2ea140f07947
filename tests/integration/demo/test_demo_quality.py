"""`headgate demo quality` finds every planted defect again, and its notebooks answer."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest
from tests.support.project_clone import SECONDS, ProjectClone, clone_project

from headgate.core.runtime.java import find_java
from headgate.quality.notebook import SUFFIXES

ROWS, SEED = 3_000, 11
HOME = ".headgate/demo-quality"
TABLES = ("customer", "orders", "taxi")
# A pair has a notebook for each side and one for both.
NOTES = (
    *(f"{pair}_{of}" for pair in ("customer", "orders") for of in ("onprem", "cloud", "reconcile")),
    "taxi",
)


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProjectClone]:
    with clone_project(tmp_path_factory.mktemp("demo"), HOME) as found:
        yield found


@pytest.fixture(scope="module")
def demo(newcomer: ProjectClone) -> dict[str, Any]:
    """One demo, left running for those who look at it."""
    words = ("-o", "json", "demo", "quality", "--rows", str(ROWS), "--seed", str(SEED))
    print(f"seed {SEED}")
    done = subprocess.run(
        [newcomer.root / ".venv/bin/headgate", *words, "--keep-running"],
        cwd=newcomer.root,
        env={**newcomer.environ, "JDBC_PORT": "0"},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-6000:]
    return json.loads(done.stdout)


@pytest.mark.slow
def test_every_count_in_every_place_is_what_was_planted(demo: dict[str, Any]) -> None:
    assert demo["holds"]
    assert [one["table"] for one in demo["comparisons"]] == list(TABLES)
    for comparison in demo["comparisons"]:
        metrics = [line for line in comparison["lines"] if line["kind"] == "metric"]
        assert {len(line["found"]) for line in metrics} == {6}
        assert all(set(line["found"].values()) == {line["planted"]} for line in metrics)
        assert sum(line["planted"] for line in metrics) > 100


@pytest.mark.slow
def test_reports_are_written(demo: dict[str, Any]) -> None:
    assert len(demo["reports"]) == len(TABLES)
    assert all(Path(page).stat().st_size > 1000 for page in demo["reports"])


@pytest.mark.slow
@pytest.mark.parametrize("note", NOTES)
def test_every_cell_of_the_notebook_runs(
    note: str, demo: dict[str, Any], newcomer: ProjectClone, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert demo["holds"]
    monkeypatch.chdir(newcomer.root)
    monkeypatch.setenv("HEADGATE_HOME", HOME)
    names: dict[str, Any] = {}
    shown = [run_cell(cell, names) for cell in code_cells(newcomer.root, note)]
    names["engine"].close()
    answers = [answer for answer in shown if answer is not None]
    assert len(answers) >= 5
    # At the end of a batch run no key waits.
    waiting = int(note.endswith("_reconcile"))
    assert sum(len(answer) == 0 for answer in answers) == waiting


@pytest.mark.slow
def test_every_query_of_the_zeppelin_notes_runs_over_jdbc(
    demo: dict[str, Any], newcomer: ProjectClone
) -> None:
    assert demo["holds"]
    asked = [query for note in NOTES for query in jdbc_paragraphs(newcomer.root, note)]
    file = newcomer.root / "notes.sql"
    file.write_text(";\n".join(asked) + ";\n")
    done = subprocess.run(
        [*beeline(), "-u", jdbc_url(newcomer.root), "--outputformat=csv2", "-f", str(file)],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.count("dq_status,dq_severity,records") == 1
    assert done.stdout.count("rollup,dq_status,cnt") == 2
    assert "default,dq_results_customer,false" in done.stdout


def jdbc_paragraphs(root: Path, note: str) -> list[str]:
    found = json.loads((root / "notebooks" / f"{note}{SUFFIXES['zeppelin']}").read_text())
    texts = [paragraph["text"] for paragraph in found["paragraphs"]]
    return [text.removeprefix("%jdbc\n") for text in texts if text.startswith("%jdbc")]


def jdbc_url(root: Path) -> str:
    said = "".join(file.read_text() for file in (root / HOME / "logs").glob("engine*.log"))
    return re.findall(r"JDBC on (\S+)", said)[-1]


def beeline() -> list[str]:
    """The client that comes with Spark, as Zeppelin's interpreter would speak to it."""
    jars = Path(pyspark.__file__).parent / "jars" / "*"
    java = find_java().home / "bin" / "java"
    return [str(java), "-cp", str(jars), "org.apache.hive.beeline.BeeLine", "-n", "anyone"]


def code_cells(root: Path, note: str) -> list[str]:
    book = json.loads((root / "notebooks" / f"{note}{SUFFIXES['jupyter']}").read_text())
    return ["".join(c["source"]) for c in book["cells"] if c["cell_type"] == "code"]


def run_cell(text: str, names: dict[str, Any]) -> Any:
    """What a notebook would show below the cell: the value of an expression."""
    if text.startswith("show("):
        return eval(compile(text, "cell", "eval"), names)
    exec(compile(text, "cell", "exec"), names)
    return None
