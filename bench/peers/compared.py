"""What every peer that compares tables is given and asked for: two tables, a key, a meter.

A peer's script says how it is called: it gives how many rows differ in each column, as far as it can
tell, and how many rows differ in all.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from played import cpu_seconds, new_session
from pyspark.sql import DataFrame, SparkSession

KEY = "k"


@dataclass(frozen=True)
class Told:
    """Rows that differ, and in which column; without columns the peer does not tell them."""

    differing: int
    columns: Mapping[str, int] | None = None


Compare = Callable[[SparkSession, DataFrame, DataFrame], Told]


def play(package: str, compare: Compare) -> None:
    """Measure one peer over the tables in the folder given, and print what it took as JSON."""
    folder = Path(sys.argv[1])
    session = new_session()
    left, right = (session.read.parquet(str(folder / name)) for name in ("left", "right"))
    small = left.limit(1_000)
    compare(session, small, small)
    wall, cpu = time.perf_counter(), cpu_seconds()
    told = compare(session, left, right)
    columns = {name: n for name, n in (told.columns or {}).items() if n}
    report = {
        "version": version(package),
        "pyspark": session.version,
        "cpu_seconds": round(cpu_seconds() - cpu, 2),
        "wall_seconds": round(time.perf_counter() - wall, 2),
        "row_results": told.columns is not None,
        "counts": {"rows": told.differing, **columns},
    }
    session.stop()
    sys.stdout.write("\n" + json.dumps(report) + "\n")
