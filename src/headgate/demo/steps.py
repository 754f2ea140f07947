"""Steps of the pipeline demo, each of them a command that a person could type; the base class of the other demos."""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from headgate.cli.main import cli
from headgate.errors import DifferenceError, OperationError
from headgate.terminal.console import console
from headgate.terminal.steps import Steps

NAME_WIDTH = 9
RECHECK = "scripts/recheck_certificate.py"
Report = TypeVar("Report", bound=BaseModel)


class Data(BaseModel):
    """What is read of a command's JSON; the rest of it is for others."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Planted(Data):
    rows: int
    bad: int
    duplicates: int
    filtered: int


class Sample(Data):
    file: str
    planted: Planted


class Generated(Data):
    events: int
    events_per_second: float


class JobRun(Data):
    records: int
    outcome: str


class Model(Data):
    name: str
    folder: str = Field(alias="schema")
    kind: str
    rows: int | None


class Marts(Data):
    passed: int
    models: tuple[Model, ...]


class Check(Data):
    verdict: str


class Validation(Data):
    checks: tuple[Check, ...]


class Sums(Data):
    read: int
    accepted: int
    refused: int
    tombstones: int
    kept: int
    duplicates: int
    filtered: int


class Table(Data):
    name: str


class Account(Data):
    dataset: str
    topic: str
    sums: Sums
    tables: Mapping[str, Table]


class Certificate(Data):
    datasets: tuple[Account, ...]


class RuleProof(Data):
    checks: tuple[dict[str, object], ...]


class Proof(Data):
    rules: tuple[RuleProof, ...]


def command(*words: str) -> str:
    """Run one of our own commands in this process; its data as JSON text.

    A child process would spend most of its time importing what this one has imported already.
    """
    before = console.format
    try:
        with contextlib.redirect_stdout(io.StringIO()) as out:
            cli.main(["-o", "json", *words], prog_name="headgate", standalone_mode=False)
    finally:
        console.format = before
    sys.stdout.write(out.getvalue())
    return out.getvalue()


def reported(model: type[Report], *words: str) -> Report:
    """The data of one of our own commands, read as the model says."""
    return model.model_validate_json(command(*words))


class Walk:
    """Takes the steps in this process; the broker and the engine are children of it."""

    bundles: ClassVar[tuple[str, ...]] = ("kafka", "spark")

    def __init__(self, steps: Steps, root: Path) -> None:
        self._steps, self._root = steps, root

    def settings(self) -> None:
        with self._steps.step("settings") as step:
            command("config", "check")
            command("dataset", "build")
            step.words = "checked, and the dataset compiled to build/sql"

    def fetch(self) -> float:
        """Java and the jars of every service; the seconds it took, mostly downloads if any."""
        from headgate.core.runtime.bundles import bundle
        from headgate.core.runtime.java import find_java

        with self._steps.step("fetch") as step:
            java = find_java()
            jars = [jar for name in self.bundles for jar in bundle(name)]
            step.words = f"Java {java.version}, {len(jars)} jars verified"
        return step.seconds

    def up(self) -> None:
        from headgate.config.settings import load_settings

        with self._steps.step("up") as step:
            command("local", "up")
            running = load_settings(self._root)
            step.words = f"broker {running.bootstrap_servers}, engine {running.connect_url}"

    def topics(self) -> None:
        with self._steps.step("topics") as step:
            command("topics", "create")
            step.words = "the topic and its dead letters"

    def sample(self, rows: int) -> Sample:
        with self._steps.step("sample") as step:
            made = reported(Sample, "feed", "sample", "--rows", str(rows))
            p = made.planted
            step.words = (
                f"{p.rows:,} rows, of them {p.bad:,} bad, {p.duplicates:,} duplicates,"
                f" {p.filtered:,} for the filters"
            )
        return made

    def generate(self) -> Generated:
        with self._steps.step("generate") as step:
            sent = reported(Generated, "feed", "generate")
            step.words = f"{sent.events:,} events, {sent.events_per_second:,.0f}/s"
        return sent

    def process(self, job: str) -> JobRun:
        with self._steps.step(job) as step:
            run = reported(JobRun, "job", "run", job)
            step.words = run.outcome
        return run

    def wait(self) -> None:
        with self._steps.step("wait") as step:
            command("lake", "wait")
            step.words = "silver has rows, as dbt reads them"

    def marts(self) -> Marts:
        with self._steps.step("dbt") as step:
            built = reported(Marts, "dbt", "build")
            models = sum(model.kind == "model" for model in built.models)
            step.words = f"{models} models, {built.passed} tests passed"
        return built

    def validate(self) -> Validation:
        with self._steps.step("validate") as step:
            found = reported(Validation, "validate")
            passed = sum(check.verdict == "PASS" for check in found.checks)
            step.words = f"{passed} of {len(found.checks)} checks in four stages passed"
        return found

    def certify(self, file: Path) -> Certificate:
        with self._steps.step("certify") as step:
            found = reported(Certificate, "certify", "--out", str(file))
            step.words = "every record is accounted for"
        return found

    def recheck(self, certificate: Path, catalog: Path) -> int:
        """Run the independent script; how many statements it found to hold."""
        with self._steps.step("recheck") as step:
            script = [sys.executable, str(self._root / RECHECK), str(certificate)]
            done = subprocess.run(
                [*script, "--catalog", str(catalog)], capture_output=True, text=True, check=False
            )
            step.log.write(done.stdout + done.stderr)
            if done.returncode == DifferenceError.exit_code:
                raise DifferenceError(
                    "the independent script does not agree with the certificate",
                    why="\n".join(x for x in done.stdout.splitlines() if x.startswith("FAIL")),
                    fix=f"read {step.log.file}",
                )
            if done.returncode:
                raise OperationError("the independent script failed", fix=f"read {step.log.file}")
            held = done.stdout.count("PASS  ")
            step.words = f"a script that imports none of our code agrees: {held} statements hold"
        return held

    def down(self) -> None:
        with self._steps.step("down") as step:
            command("local", "down")
            step.words = "everything is stopped, the data are kept"
