"""What every peer is given and asked for: the rows, the rules, a session, a meter.

It runs in each peer's own environment, so it needs PySpark and the standard library alone. A peer's
script says how the peer is called: `rows` writes its verdict on every row, `counts` gives how many
rows broke each rule. A peer without row results has `counts` only.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Rule:
    """One rule in the terms that all have: a row is sound when its value is as said."""

    name: str
    kind: str
    column: str
    low: float | None = None
    high: float | None = None
    values: tuple[str, ...] = ()
    pattern: str = ""


@dataclass(frozen=True)
class Task:
    """One measurement: these rows under these rules, with room for the output."""

    folder: Path
    rules: tuple[Rule, ...]

    @property
    def source(self) -> str:
        return str(self.folder / "rows.parquet")

    @property
    def output(self) -> str:
        return str(self.folder / "output")


Rows = Callable[[SparkSession, Task, DataFrame], DataFrame]
Counts = Callable[[SparkSession, Task, DataFrame], Mapping[str, int]]


def play(package: str, counts: Counts, rows: Rows | None = None) -> None:
    """Measure one peer over the task in the folder given, and print what it took as JSON."""
    task = read_task(Path(sys.argv[1]))
    session = new_session()
    source = session.read.parquet(task.source)
    warm = Task(task.folder / "warm", task.rules[:3])
    found = _judged(session, warm, source.limit(1_000), counts, rows)
    wall, cpu, jobs = time.perf_counter(), cpu_seconds(), _jobs(session)
    found = _judged(session, task, source, counts, rows)
    report = {
        "version": version(package),
        "pyspark": session.version,
        "cpu_seconds": round(cpu_seconds() - cpu, 2),
        "wall_seconds": round(time.perf_counter() - wall, 2),
        "jobs": _jobs(session) - jobs,
        "row_results": rows is not None,
        "counts": dict(found),
    }
    session.stop()
    sys.stdout.write("\n" + json.dumps(report) + "\n")


def _judged(
    session: SparkSession, task: Task, source: DataFrame, counts: Counts, rows: Rows | None
) -> Mapping[str, int]:
    """Every row's verdict written, then the counts read from what was written."""
    if rows is None:
        return counts(session, task, source)
    rows(session, task, source).write.mode("overwrite").parquet(task.output)
    return counts(session, task, session.read.parquet(task.output))


def read_task(folder: Path) -> Task:
    plain: list[dict[str, Any]] = json.loads((folder / "rules.json").read_text())
    rules = (Rule(**{**rule, "values": tuple(rule.get("values", ()))}) for rule in plain)
    return Task(folder, tuple(rules))


def new_session() -> SparkSession:
    options = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.memory": "3g",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master("local[2]").appName("peer")
    for name, value in options.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def _jobs(session: SparkSession) -> int:
    """How many Spark jobs there have been; their numbers rise by one."""
    session.range(1).collect()
    ids = session.sparkContext.statusTracker().getJobIdsForGroup(None)
    return max(ids, default=0)


def cpu_seconds() -> float:
    """User and system time of this process and the JVM below it."""
    own = os.getpid()
    return sum(_ticks(pid) for pid in (own, *_below(own))) / TICKS


def _below(parent: int) -> list[int]:
    found: list[int] = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        fields = _fields(path)
        if len(fields) > 1 and int(fields[1]) == parent:
            pid = int(path.parent.name)
            found += [pid, *_below(pid)]
    return found


def _ticks(pid: int) -> int:
    fields = _fields(Path(f"/proc/{pid}/stat"))
    return int(fields[11]) + int(fields[12]) if fields else 0


def _fields(path: Path) -> list[str]:
    try:
        return path.read_text().rpartition(")")[2].split()
    except OSError:
        return []
