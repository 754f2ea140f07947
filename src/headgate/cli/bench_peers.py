"""`headgate bench peers`: the table of what each tool took for the same work."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from headgate.errors import OperationError

RESULTS = "bench/results"
# What is measured, by which script, and where the report is kept.
RULES, TABLES = "rules", "two tables"
WORK = {RULES: ("peers.py", "peers"), TABLES: ("peers_compare.py", "peers_compare")}


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
    given = ("--rows", str(rows), "--only", only, "--seconds", str(seconds))
    return [
        {"work": work, **line}
        for work in WORK
        for line in _kept(work, (*given, *(("--rules", str(rules)) if work == RULES else ())))
    ]


def _kept(work: str, given: Sequence[str]) -> list[dict[str, str]]:
    from headgate.cli.console import as_table
    from headgate.profile import find_root

    root, (script, name) = find_root(Path.cwd()), WORK[work]
    found = _measured(root / "bench" / script, given)
    table = shown(found.lines)
    if not table:  # none of the tools asked for does this work
        return []
    folder = root / RESULTS
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(found.model_dump_json(indent=2) + "\n")
    (folder / f"{name}.md").write_text(as_table(table, markdown=True) + "\n", encoding="utf-8")
    return table


def shown(lines: Sequence[Line]) -> list[dict[str, str]]:
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


def _measured(script: Path, given: Sequence[str]) -> Report:
    command = [sys.executable, str(script), *given]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise OperationError(f"{script.name} failed", why=f"exit code {done.returncode}")
    return Report.model_validate_json(done.stdout)
