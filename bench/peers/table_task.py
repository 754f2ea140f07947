"""One tool measured over two tables that are compared by key.

The tool's script says how it is called: it gives how many rows differ in all and, if it can, how many
differ in each column.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from bench.timing import measure_cost
from pyspark.sql import DataFrame, SparkSession
from rule_task import start_spark

KEY = "k"


@dataclass(frozen=True)
class Difference:
    """Rows that differ, in all and by column if the tool counts that."""

    rows: int
    columns: Mapping[str, int] | None = None


Compare = Callable[[SparkSession, DataFrame, DataFrame], Difference]


def measure_peer(package: str, compare: Compare) -> None:
    """Measure a tool over the tables in the folder given, and print what it took as JSON."""
    folder = Path(sys.argv[1])
    session = start_spark({})
    left, right = (session.read.parquet(str(folder / name)) for name in ("left", "right"))
    small = left.limit(1_000)
    compare(session, small, small)
    differences: list[Difference] = []
    cost = measure_cost(lambda: differences.append(compare(session, left, right)))
    columns = differences[0].columns
    counts = {name: n for name, n in (columns or {}).items() if n}
    report = {
        "version": version(package),
        "pyspark": session.version,
        "cpu_seconds": cost.cpu_seconds,
        "wall_seconds": cost.wall_seconds,
        "row_results": columns is not None,
        "counts": {"rows": differences[0].rows, **counts},
    }
    session.stop()
    sys.stdout.write("\n" + json.dumps(report) + "\n")
