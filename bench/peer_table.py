"""`python -m bench peers`: the table of what each tool took for the same work."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from bench.run_goals import RESULTS
from headgate.config.env_files import find_root
from headgate.errors import OperationError
from headgate.terminal.console import as_table

# What is measured, and the name of its report.
WORK = {"rules": "peers", "tables": "peers_compare"}


class Line(BaseModel):
    """What one tool took; without figures its verdict says why."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    peer: str
    verdict: str
    version: str = ""
    pyspark: str = ""
    cpu_seconds: float | None = None
    wall_seconds: float | None = None
    jobs: int | None = None
    row_results: bool = False


class Report(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    rows: int
    rules: int
    lines: tuple[Line, ...]


def run_peers(rows: int, rules: int, only: str, seconds: float) -> list[dict[str, str]]:
    """Measure rules and the comparison of tables, keep both reports, and give the table."""
    root = find_root(Path.cwd())
    options = ("--rows", rows, "--rules", rules, "--only", only, "--seconds", seconds)
    return [
        {"work": work, **row} for work in WORK for row in _measure(root, work, map(str, options))
    ]


def _measure(root: Path, work: str, options: Iterable[str]) -> list[dict[str, str]]:
    report = _run_script(root, work, options)
    if not report.lines:  # none of the tools asked for does this work
        return []
    table = render_lines(report.lines)
    folder = root / RESULTS
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{WORK[work]}.json").write_text(report.model_dump_json(indent=2) + "\n")
    file = folder / f"{WORK[work]}.md"
    file.write_text(as_table(table, markdown=True) + "\n", encoding="utf-8")
    return table


def render_lines(lines: Sequence[Line]) -> list[dict[str, str]]:
    """One row a tool, its cost as a multiple of ours where ours was measured."""
    ours = next((line.cpu_seconds for line in lines if line.peer == "ours"), None)
    return [
        {
            "tool": f"{line.peer} {line.version}".rstrip(),
            "CPU s": "" if line.cpu_seconds is None else f"{line.cpu_seconds:.1f}",
            "of ours": f"{line.cpu_seconds / ours:.2f} ×" if line.cpu_seconds and ours else "",
            "wall s": "" if line.wall_seconds is None else f"{line.wall_seconds:.1f}",
            "Spark jobs": "" if line.jobs is None else str(line.jobs),
            "verdict on each row": "yes" if line.row_results else "no",
            "counts": line.verdict,
        }
        for line in lines
    ]


def _run_script(root: Path, work: str, options: Iterable[str]) -> Report:
    command = [sys.executable, "-m", "bench.run_peers", work, *options]
    done = subprocess.run(command, cwd=root, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise OperationError(f"bench.run_peers {work} failed", why=f"exit code {done.returncode}")
    return Report.model_validate_json(done.stdout)
