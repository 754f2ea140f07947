"""A copy of the project in which the commands of a documentation page are run."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from headgate.config.schema import NAMES
from headgate.demo.own_home import SHORT_LIVED
from headgate.local import stack

ROOT = Path(__file__).resolve().parents[2]
COPIED = (
    *("Makefile", "datasets", "dbt", "env", "schemas", "scripts", "spark"),
    *("rules", "rules.yaml", "tools", "notebooks", "contracts", "java", "consumers"),
)
# What make compares .venv with; empty and old, so that it never sets up another.
WATCHED = (
    *(f"requirements/{name}.txt" for name in ("run", "dev", "build", "java")),
    "pyproject.toml",
)
# Cassandra takes its own, or the next: CASSANDRA_PORT is also what its clients go by.
PORTS = ("KAFKA_PORT", "CONNECT_PORT", "SPARK_UI_PORT", "METRICS_PORT", "KAFKA_CONNECT_PORT")
FREE_PORTS = dict.fromkeys(PORTS, "0")
SECTION = re.compile(r"^## (?P<title>[^\n]+)\n(?P<body>.*?)(?=^## |\Z)", re.M | re.S)
BLOCK = re.compile(r"^```bash\n(.*?)^```", re.M | re.S)
SECONDS = 540  # on a machine that does other things too


@dataclass(frozen=True)
class Step:
    """One fenced block of the page, and the title of the section it stands in."""

    section: str
    commands: str


def read_steps(page: Path) -> list[Step]:
    """All fenced bash blocks of a page, with the titles of their sections."""
    return [
        Step(re.sub(r"^\d+\. ", "", section["title"]), block)
        for section in SECTION.finditer(page.read_text("utf-8"))
        for block in BLOCK.findall(section["body"])
    ]


def steps_up_to(steps: list[Step], section: str) -> list[Step]:
    """The steps up to the last one of this section."""
    last = max(i for i, step in enumerate(steps) if step.section == section)
    return steps[: last + 1]


def steps_from(steps: list[Step], section: str) -> list[Step]:
    """The steps from the first one of this section on."""
    first = min(i for i, step in enumerate(steps) if step.section == section)
    return steps[first:]


def without_commands(steps: list[Step], *names: str) -> list[Step]:
    """The steps without the lines that run these `headgate` commands, each of which must be there."""
    for name in names:
        assert any(f"/headgate {name}" in step.commands for step in steps), name
    return [
        replace(
            step,
            commands="".join(
                line
                for line in step.commands.splitlines(keepends=True)
                if not any(f"/headgate {name}" in line for name in names)
            ),
        )
        for step in steps
    ]


def render_script(steps: Sequence[Step]) -> str:
    """One bash script of all steps, each with the title of its section in front."""
    return "\n".join(f": {shlex.quote(step.section)}\n{step.commands}" for step in steps)


@dataclass(frozen=True)
class ProjectClone:
    """A copied project whose commands run on free ports."""

    root: Path

    def run_steps(
        self, steps: list[Step], name: str = "", name_on_the_page: str = "", seconds: int = SECONDS
    ) -> str:
        """Run all steps in one bash; its output. A command that fails fails the test."""
        script = render_script(steps)
        if name_on_the_page:
            script = re.sub(rf"\b{name_on_the_page}(?=\b|_)", name, script)
        screen = self.root / "screen.txt"
        with screen.open("w") as shown:
            done = subprocess.run(
                ["bash", "-v", "-eu", "-o", "pipefail", "-c", script],
                cwd=self.root,
                env=self.environ,
                stdin=subprocess.DEVNULL,
                stdout=shown,
                stderr=shown,
                timeout=seconds,
                check=False,
            )
        assert done.returncode == 0, screen.read_text("utf-8")[-6000:]
        return screen.read_text("utf-8")

    def newest_account(self, name: str) -> dict[str, Any]:
        """The dataset's account in the newest certificate."""
        newest = max((self.root / ".headgate" / "certificates").glob("*.json"))
        accounts = json.loads(newest.read_text("utf-8"))["datasets"]
        return next(account for account in accounts if account["dataset"] == name)

    @property
    def environ(self) -> dict[str, str]:
        inherited = {k: v for k, v in os.environ.items() if k not in NAMES.values()}
        return {**inherited, **FREE_PORTS, **SHORT_LIVED}


@contextmanager
def clone_project(root: Path, *homes: str) -> Generator[ProjectClone]:
    """Copy the project with this virtual environment; what runs in its homes is stopped at the end."""
    for part in COPIED:
        source = ROOT / part
        (shutil.copytree if source.is_dir() else shutil.copy)(source, root / part)
    for name in WATCHED:
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).touch()
        os.utime(root / name, (0, 0))
    (root / ".venv").mkdir()
    for part in Path(sys.prefix).iterdir():
        if not part.name.startswith("."):
            (root / ".venv" / part.name).symlink_to(part)
    for mark in (".ready", ".prepared"):
        (root / ".venv" / mark).touch()
    try:
        yield ProjectClone(root)
    finally:
        for home in homes or (".headgate",):
            stack.down(root / home)
