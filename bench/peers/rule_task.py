"""One tool measured over rows and rules.

It runs in the tool's own environment, so it needs PySpark and the standard library alone. The tool's
script says how the tool is called: `rows` gives its result for every row, `counts` how many rows
failed each rule. A tool without row results has `counts` only.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench.timing import measure_cost
from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Rule:
    """A rule of a kind that all tools have."""

    name: str
    kind: str
    column: str
    low: float | None = None
    high: float | None = None
    values: tuple[str, ...] = ()
    pattern: str = ""


@dataclass(frozen=True)
class Task:
    """The folder of the rows and the output, and the rules."""

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


def measure_peer(
    package: str,
    counts: Counts,
    rows: Rows | None = None,
    spark_options: Mapping[str, str] | None = None,
) -> None:
    """Measure a tool over the task in the folder given, and print what it took as JSON."""
    task = read_task(Path(sys.argv[1]))
    session = start_spark(spark_options or {})
    source = session.read.parquet(task.source)
    warm = Task(task.folder / "warm", task.rules[:3])
    _count_failures(session, warm, source.limit(1_000), counts, rows)
    jobs = _count_jobs(session)
    failures: dict[str, int] = {}
    cost = measure_cost(
        lambda: failures.update(_count_failures(session, task, source, counts, rows))
    )
    report = {
        "version": version(package),
        "pyspark": session.version,
        "cpu_seconds": cost.cpu_seconds,
        "wall_seconds": cost.wall_seconds,
        "jobs": _count_jobs(session) - jobs,
        "row_results": rows is not None,
        "counts": failures,
    }
    session.stop()
    sys.stdout.write("\n" + json.dumps(report) + "\n")


def _count_failures(
    session: SparkSession, task: Task, source: DataFrame, counts: Counts, rows: Rows | None
) -> Mapping[str, int]:
    """Write the result of every row, then count from what was written."""
    if rows is None:
        return counts(session, task, source)
    rows(session, task, source).write.mode("overwrite").parquet(task.output)
    return counts(session, task, session.read.parquet(task.output))


def read_task(folder: Path) -> Task:
    plain: list[dict[str, Any]] = json.loads((folder / "rules.json").read_text())
    rules = (Rule(**{**rule, "values": tuple(rule.get("values", ()))}) for rule in plain)
    return Task(folder, tuple(rules))


def start_spark(more: Mapping[str, str]) -> SparkSession:
    options = {
        **more,
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


def _count_jobs(session: SparkSession) -> int:
    """How many Spark jobs there have been; their numbers rise by one."""
    session.range(1).collect()
    ids = session.sparkContext.statusTracker().getJobIdsForGroup(None)
    return max(ids, default=0)
