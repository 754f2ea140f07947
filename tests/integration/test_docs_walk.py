"""docs/03 is followed to the letter: its commands are taken from the page and run as they stand.

Once with the file that the page makes, and with files that nobody here has written: there, only the
dataset's name is another.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.unit.feeds.real_tables import write_real_table

from headgate.axes import NAMES
from headgate.cli.demo import SHORT_LIVED
from headgate.local import services

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "03_add_new_dataset.md"
NAME_ON_THE_PAGE = "rides"
COPIED = ("Makefile", "datasets", "dbt", "env", "schemas", "scripts", "spark")
# What make compares .venv with; empty and old, so that it never sets up another.
WATCHED = (*(f"requirements/{name}.txt" for name in ("dev", "build", "java")), "pyproject.toml")
PORTS = ("KAFKA_PORT", "CONNECT_PORT", "SPARK_UI_PORT", "METRICS_PORT")
FREE_PORTS = dict.fromkeys(PORTS, "0")
SECTION = re.compile(r"^## (?P<title>[^\n]+)\n(?P<body>.*?)(?=^## |\Z)", re.M | re.S)
BLOCK = re.compile(r"^```bash\n(.*?)^```", re.M | re.S)
MAKES_THE_FILE, CERTIFIES = "A file", "Certify"
SECONDS = 540  # on a machine that does other things too


@dataclass(frozen=True)
class Step:
    """One fenced block of the page, and the title of the section it stands in."""

    section: str
    commands: str


def steps_of(page: Path) -> list[Step]:
    return [
        Step(re.sub(r"^\d+\. ", "", section["title"]), block)
        for section in SECTION.finditer(page.read_text("utf-8"))
        for block in BLOCK.findall(section["body"])
    ]


def up_to(steps: list[Step], section: str) -> list[Step]:
    last = max(i for i, step in enumerate(steps) if step.section == section)
    return steps[: last + 1]


@dataclass(frozen=True)
class Newcomer:
    """Somebody with a clone of the project who types what the page says, all in one terminal."""

    root: Path

    def type(self, steps: list[Step], name: str = NAME_ON_THE_PAGE) -> None:
        lines = [f": {shlex.quote(step.section)}\n{step.commands}" for step in steps]
        script = re.sub(rf"\b{NAME_ON_THE_PAGE}(?=\b|_)", name, "\n".join(lines))
        screen = self.root / "screen.txt"
        with screen.open("w") as shown:
            done = subprocess.run(
                ["bash", "-v", "-eu", "-o", "pipefail", "-c", script],
                cwd=self.root,
                env=self._environ(),
                stdin=subprocess.DEVNULL,
                stdout=shown,
                stderr=shown,
                timeout=SECONDS,
                check=False,
            )
        assert done.returncode == 0, screen.read_text("utf-8")[-6000:]

    def account(self, name: str = NAME_ON_THE_PAGE) -> dict[str, Any]:
        """What the newest certificate says of the dataset."""
        newest = max((self.root / ".headgate" / "certificates").glob("*.json"))
        accounts = json.loads(newest.read_text("utf-8"))["datasets"]
        return next(account for account in accounts if account["dataset"] == name)

    @staticmethod
    def _environ() -> dict[str, str]:
        inherited = {k: v for k, v in os.environ.items() if k not in NAMES.values()}
        return {**inherited, **FREE_PORTS, **SHORT_LIVED}


@pytest.fixture
def newcomer(tmp_path: Path) -> Iterator[Newcomer]:
    for part in COPIED:
        source = ROOT / part
        (shutil.copytree if source.is_dir() else shutil.copy)(source, tmp_path / part)
    for name in WATCHED:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (0, 0))
    (tmp_path / ".venv").mkdir()
    for part in Path(sys.prefix).iterdir():
        if not part.name.startswith("."):
            (tmp_path / ".venv" / part.name).symlink_to(part)
    for mark in (".ready", ".prepared"):
        (tmp_path / ".venv" / mark).touch()
    yield Newcomer(tmp_path)
    services.down(tmp_path / ".headgate")


@pytest.mark.slow
def test_rides_go_from_a_file_to_a_certificate_as_the_page_says(newcomer: Newcomer) -> None:
    newcomer.type(up_to(steps_of(PAGE), CERTIFIES))
    account = newcomer.account()
    assert account["holds"]
    sums = account["sums"]
    assert (sums["read"], sums["kept"]) == (20_200, 19_200)
    assert (sums["refused"], sums["duplicates"], sums["filtered"]) == (0, 200, 800)


@pytest.mark.slow
def test_the_page_is_right_to_its_last_line(newcomer: Newcomer) -> None:
    newcomer.type(steps_of(PAGE))
    account = newcomer.account()
    assert account["holds"]
    assert account["sums"]["read"] == 20_203
    assert "tip" in account["tables"]["bronze"]["columns"]


@pytest.mark.slow
def test_tables_of_others_follow_the_page_with_nothing_but_their_names(newcomer: Newcomer) -> None:
    (newcomer.root / "data").mkdir()
    steps = [step for step in up_to(steps_of(PAGE), CERTIFIES) if step.section != MAKES_THE_FILE]
    for name, rows in {"weather": 26_115, "flights": 336_776}.items():
        write_real_table(name, newcomer.root / "data" / f"{name}.parquet")
        newcomer.type(steps, name)
        account = newcomer.account(name)
        assert account["holds"]
        assert account["sums"]["read"] == rows
        assert account["sums"]["kept"] > 0
