"""Runs the benchmarks of goals one after the other, and keeps the result of each that ends."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from bench.goals import (
    GOALS,
    Failure,
    Goal,
    Machine,
    Measurement,
    Result,
    Size,
    describe_run,
    insert_table,
    render_rows,
    render_value,
)
from headgate.demo.own_home import (
    SHORT_LIVED,
    alone,
    embedded_environment,
    emptied,
    replaced,
    stopped_on_failure,
)
from headgate.demo.steps import command
from headgate.errors import OperationError, UsageError
from headgate.terminal.console import as_table, console
from headgate.terminal.steps import Steps

RESULTS = Path("build") / "bench"
PAGE = Path("docs") / "benchmarks.md"
# A demo that is told to stop takes its broker and its engine down first.
STOP_SECONDS = 60.0


@dataclass(frozen=True)
class Code:
    """The code that is measured; `state` is a hash of the commit and all uncommitted changes.

    Without git both are empty, and no earlier result can be said to be of this code.
    """

    commit: str = ""
    state: str = ""


@dataclass(frozen=True)
class BenchRun:
    """The benchmarks of one code at one size, in a project with a folder bench/."""

    root: Path
    size: Size
    code: Code
    max_seconds: float

    @property
    def folder(self) -> Path:
        return self.root / RESULTS / self.size

    def run(self, goals: Sequence[Goal], fresh: bool) -> list[Result | Failure]:
        """Measure each goal that has no result of this code; `fresh` discards results first."""
        if not (self.root / "bench" / "__main__.py").is_file():
            raise UsageError(
                f"there are no benchmarks in {self.root}",
                why="they are part of the sources, not of the installed package",
                fix="run this in a clone of the repository",
            )
        outcomes: dict[str, Result | Failure] = {}
        if fresh:  # at once, so that a run that is broken off does not go on from older results
            for goal in goals:
                self._file(goal).unlink(missing_ok=True)
        for goal in goals:
            result = self.read_result(goal)
            if result is not None and self.code.state and result.state == self.code.state:
                console.say(
                    f"{goal.id} was measured at {result.measured_at:%Y-%m-%d %H:%M} UTC,"
                    " with the same code: --fresh measures it again"
                )
                outcomes[goal.id] = result
        if remaining := [goal for goal in goals if goal.id not in outcomes]:
            outcomes |= self._measure_all(remaining)
        return [outcomes[goal.id] for goal in goals]

    def _measure_all(self, goals: Sequence[Goal]) -> dict[str, Result | Failure]:
        """One process a goal; those that need a broker share one. Failures stop nobody else."""
        from headgate.config.settings import load_settings

        home = self.root / ".headgate" / "bench"
        machine = describe_machine()
        steps = Steps(self.folder / "logs", "bench", width=8)
        outcomes: dict[str, Result | Failure] = {}
        with alone(home), replaced(embedded_environment(self.root, home, os.environ)):
            emptied(home)
            if self.size == "tiny":
                os.environ.setdefault("SPARK_JAVA_OPTIONS", SHORT_LIVED["SPARK_JAVA_OPTIONS"])
            # What a benchmark that was killed leaves behind is removed with the home.
            os.environ["TMPDIR"] = str(home / "data")
            with stopped_on_failure(home):
                if needs_broker := any(goal.needs_broker for goal in goals):
                    with steps.step("broker"):
                        command("local", "up", "--only", "broker")
                bootstrap = load_settings(self.root).bootstrap_servers or ""
                for goal in goals:
                    outcomes[goal.id] = self._measure(goal, bootstrap, machine, steps)
            if needs_broker:
                command("local", "down")
        return outcomes

    def _measure(
        self, goal: Goal, bootstrap: str, machine: Machine, steps: Steps
    ) -> Result | Failure:
        begun = time.monotonic()
        try:
            with steps.step(goal.id) as step:
                measurement = self._run_child(goal, bootstrap, step.log.file)
                step.words = "; ".join(
                    f"{figure.what}: {render_value(figure.value, figure.unit)}"
                    for figure in measurement.figures
                )
        except OperationError as error:
            return Failure(goal, error.what, time.monotonic() - begun)
        result = Result(
            goal=goal.id,
            size=self.size,
            commit=self.code.commit,
            state=self.code.state,
            measured_at=datetime.now(UTC),
            seconds=round(time.monotonic() - begun, 1),
            machine=machine,
            measurement=measurement,
        )
        self._file(goal).write_text(result.model_dump_json(indent=2) + "\n", encoding="utf-8")
        return result

    def _run_child(self, goal: Goal, bootstrap: str, log: Path) -> Measurement:
        from headgate.local.process import Child, Command, wait_until

        report = log.with_suffix(".json")
        report.unlink(missing_ok=True)
        words = ["-m", "bench", "--debug", "measure", goal.id]
        words += ["--size", self.size, "--report", str(report)]
        if goal.needs_broker:
            words += ["--bootstrap", bootstrap]
        child = Child(Command((sys.executable, *words), log, self.root))
        try:
            if not wait_until(lambda: child.exit_code is not None, self.max_seconds, pause=0.2):
                raise OperationError(f"not done after {self.max_seconds:g} s")
        finally:
            child.stop(STOP_SECONDS)
        if child.exit_code:
            raise OperationError(f"broke with exit code {child.exit_code}")
        return Measurement.model_validate_json(report.read_bytes())

    def read_result(self, goal: Goal) -> Result | None:
        """The last result of a goal; one that cannot be read is none."""
        from pydantic import ValidationError

        with suppress(OSError, ValidationError):
            return Result.model_validate_json(self._file(goal).read_bytes())
        return None

    def read_results(self) -> list[Result]:
        """The last result of every goal that was ever measured here."""
        results = (self.read_result(goal) for goal in GOALS)
        return [result for result in results if result is not None]

    def _file(self, goal: Goal) -> Path:
        return self.folder / f"{goal.id}.json"

    def write_table(self, outcomes: Sequence[Result | Failure]) -> None:
        """Write the table beside the results."""
        table = as_table(render_rows(outcomes), markdown=True)
        (self.folder / "table.md").write_text(table + "\n", encoding="utf-8")


def write_page(root: Path, results: Sequence[Result]) -> None:
    """Write the table of the results into the page of figures."""
    if not results:
        raise OperationError("there are no figures to write into the page")
    page = root / PAGE
    table = f"{describe_run(results)}\n\n{as_table(render_rows(results), markdown=True)}"
    page.write_text(insert_table(page.read_text(encoding="utf-8"), table), encoding="utf-8")
    console.done(f"written into {PAGE}")


def read_code(root: Path) -> Code:
    """The commit that is checked out, and whether there are changes since."""
    try:
        commit, status, diff = (
            subprocess.run(["git", *words], cwd=root, capture_output=True, check=True).stdout
            for words in (("rev-parse", "--short", "HEAD"), ("status", "--short"), ("diff", "HEAD"))
        )
    except (OSError, subprocess.CalledProcessError):
        return Code()
    name = commit.decode().strip() + ("+changes" if status else "")
    return Code(name, hashlib.sha256(commit + status + diff).hexdigest())


def describe_machine() -> Machine:
    import platform

    from headgate.core.runtime.java import find_java

    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return Machine(
        cores=os.cpu_count() or 1,
        processor=_read_processor(),
        memory_gib=round(memory, 1),
        java=f"Java {find_java().version}",
        python=platform.python_version(),
        load=round(os.getloadavg()[0], 2),
    )


def _read_processor() -> str:
    file = Path("/proc/cpuinfo")
    lines = file.read_text().splitlines() if file.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else "unknown"
