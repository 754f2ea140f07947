"""Every benchmark can be imported and run, and one that breaks does not stop the others."""

from __future__ import annotations

import importlib
import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest
from bench.cli import cli
from bench.goals import BEGIN, END, GOALS, Goal
from click.testing import CliRunner, Result

from headgate.errors import OperationError, UsageError

ROOT = Path(__file__).parents[3]
# Scripts in bench/peers run in the environments of other tools.
MODULES = sorted(
    ".".join(file.relative_to(ROOT).with_suffix("").parts)
    for file in (ROOT / "bench").rglob("*.py")
    if file.parent.name != "peers"
)
# In the place of bench/: a benchmark that does what build/behaviour.json says.
FAKE_BENCH = """
import json, pathlib, sys, time

goal, report = (sys.argv[sys.argv.index(word) + 1] for word in ("measure", "--report"))
with open("build/started.txt", "a") as started:
    started.write(goal + "\\n")
behaviour = json.loads(pathlib.Path("build/behaviour.json").read_text()).get(goal)
if behaviour == "break":
    sys.exit("it went wrong")
if behaviour == "hang":
    time.sleep(600)
figure = {"what": f"speed of {goal}", "value": 2, "unit": "×", "target": 1}
pathlib.Path(report).write_text(json.dumps({"figures": [figure]}))
"""


@pytest.mark.parametrize("module", MODULES)
def test_every_benchmark_can_be_imported(module: str) -> None:
    importlib.import_module(module)


@pytest.mark.parametrize("goal", GOALS, ids=lambda goal: goal.id)
def test_every_goal_names_a_benchmark_that_takes_its_arguments(goal: Goal) -> None:
    measure = getattr(importlib.import_module(goal.module), goal.function)
    parameters = inspect.signature(measure).parameters
    assert set(goal.tiny) <= set(parameters)
    # What has no default is given by the command: the broker's address, if it is asked for.
    required = [p.name for p in parameters.values() if p.default is p.empty]
    assert required == (["bootstrap"] if goal.needs_broker else [])


class FakeProject:
    """A project in git whose benchmarks do as they are told."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "bench").mkdir()
        (root / "bench" / "__main__.py").write_text(FAKE_BENCH)
        (root / ".gitignore").write_text("build/\n.headgate/\n__pycache__/\n")
        (root / "build").mkdir()
        self.git("init", "--quiet")
        self.git("add", ".")
        self.git("commit", "--quiet", "--message", "begin")
        self.behave()

    def git(self, *words: str) -> None:
        person = ("-c", "user.name=ann", "-c", "user.email=ann@example.com")
        subprocess.run(["git", *person, *words], cwd=self.root, check=True)

    def behave(self, **behaviours: str) -> None:
        (self.root / "build" / "behaviour.json").write_text(json.dumps(behaviours))

    def run(self, *words: str) -> Result:
        (self.root / "build" / "started.txt").write_text("")
        return CliRunner().invoke(cli, ["-o", "json", "run", *words])

    @property
    def started(self) -> list[str]:
        return (self.root / "build" / "started.txt").read_text().split()


@pytest.fixture
def fake(project: Path, monkeypatch: pytest.MonkeyPatch) -> FakeProject:
    monkeypatch.chdir(project)
    return FakeProject(project)


def verdicts(result: Result) -> dict[str, str]:
    return {row["goal"]: row["verdict"] for row in json.loads(result.stdout)["items"]}


def test_a_benchmark_that_breaks_or_hangs_does_not_stop_the_others(fake: FakeProject) -> None:
    fake.behave(P1="break", P2="hang")

    result = fake.run("P1", "P2", "P3", "--seconds", "3")

    assert fake.started == ["P1", "P2", "P3"]
    assert verdicts(result) == {
        "P1": "broke with exit code 1",
        "P2": "not done after 3 s",
        "P3": "missed",
    }
    assert isinstance(result.exception, OperationError)
    assert result.exception.what == "no figures for P1, P2"
    logs = fake.root / "build" / "bench" / "full" / "logs"
    assert str(logs) in result.exception.fix
    assert "it went wrong" in (logs / "bench-P1.log").read_text()


def test_a_run_goes_on_where_it_stopped_until_the_code_changes(fake: FakeProject) -> None:
    fake.behave(P3="break")
    assert fake.run("P1", "P3").exception

    fake.behave()
    resumed = fake.run("P1", "P3")

    assert fake.started == ["P3"]
    assert verdicts(resumed) == {"P1": "missed", "P3": "missed"}
    assert resumed.exit_code == 0, "a goal that is missed is no failure"
    kept = json.loads((fake.root / "build" / "bench" / "full" / "P3.json").read_bytes())
    assert (kept["goal"], kept["measurement"]["figures"][0]["value"]) == ("P3", 2)
    assert kept["commit"]
    assert kept["measured_at"]

    fake.behave(P3="break")
    fake.run("P1", "P3", "--fresh")
    assert fake.started == ["P1", "P3"]
    fake.behave()
    fake.run("P1", "P3")
    assert fake.started == ["P3"], "a run that starts over goes on where it stopped, too"
    fake.run("P1", "--size", "tiny")
    assert fake.started == ["P1"], "a full result says nothing about the tiny size"
    with (fake.root / "bench" / "__main__.py").open("a") as code:
        code.write("# changed\n")
    fake.run("P1", "P3")
    assert fake.started == ["P1", "P3"]


def test_a_folder_without_benchmarks_is_refused(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    result = CliRunner().invoke(cli, ["run"])
    assert "there are no benchmarks" in str(result.exception)


def test_the_page_gets_every_figure_measured_so_far(fake: FakeProject) -> None:
    page = fake.root / "docs" / "benchmarks.md"
    page.parent.mkdir()
    page.write_text(f"before\n{BEGIN}\n{END}\nafter\n")
    fake.run("P1")

    fake.run("P3", "--page")

    text = page.read_text()
    assert "speed of P1" in text
    assert "speed of P3" in text
    assert isinstance(fake.run("--page", "--size", "tiny").exception, UsageError)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_every_benchmark_runs_at_a_tiny_size() -> None:
    command = [sys.executable, "-m", "bench", "-o", "json", "run"]
    done = subprocess.run(
        [*command, "--size", "tiny", "--fresh"], cwd=ROOT, stdout=subprocess.PIPE, check=True
    )
    rows = json.loads(done.stdout)["items"]
    assert [row["goal"] for row in rows if row["seconds"]] == [goal.id for goal in GOALS]
    assert {row["verdict"] for row in rows} == {"tiny"}
    assert all(row["measured"] for row in rows)


@pytest.mark.slow
@pytest.mark.parametrize("work", ["rules", "tables"])
def test_what_needs_no_other_environment_runs_among_the_peers(work: str) -> None:
    options = ("--rows", "6000", "--rules", "8", "--only", "ours,exceptall")
    command = [sys.executable, "-m", "bench.run_peers", work, *options]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    lines = json.loads(done.stdout)["lines"]
    assert {line["peer"]: line["verdict"] for line in lines} == dict.fromkeys(
        ["ours"] if work == "rules" else ["ours", "exceptAll"], "counts as planted"
    )
