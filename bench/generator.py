"""P9: how fast the generator sends a Parquet file, with and without schema validation, on one core.

The figure is rows per CPU second, the best of the repeats: what one core can do, also while other
programs use the machine. Beside it stands the same work done with a dictionary a row.
"""

from __future__ import annotations

import os
import resource
import tempfile
from collections.abc import Callable
from pathlib import Path

import orjson

from bench.goals import Figure, Measurement
from bench.sample import ROOT, create_topics, send_sample, write_taxi_sample
from bench.timing import best_cpu, measure_in_turns
from headgate.core.kafka.producer import TopicWriter
from headgate.pipeline.generator.source import ParquetSource

TOPIC = "bench-generator"
SCHEMA = ROOT / "schemas/taxi_trip.json"
TARGETS = {"plain": 100_000, "validated": 30_000}
ROW_BY_ROW = "row by row"


def measure_generator(bootstrap: str, rows: int = 500_000, repeat: int = 3) -> Measurement:
    use_one_core()
    create_topics(bootstrap, TOPIC)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "events.parquet"
        write_taxi_sample(file, rows)
        forms: dict[str, Callable[[], object]] = {
            "plain": lambda: send_sample(file, bootstrap, TOPIC),
            "validated": lambda: send_sample(file, bootstrap, TOPIC, SCHEMA),
            ROW_BY_ROW: lambda: send_row_by_row(file, bootstrap, rows // 10),
        }
        costs = measure_in_turns(forms, repeat)
    cpu = best_cpu(costs)
    figures = tuple(
        Figure(
            what=f"{rows:,} rows, {name}, rows per CPU second",
            value=round(rows / cpu[name]),
            unit="rows/s",
            target=target,
            better="more",
        )
        for name, target in TARGETS.items()
    )
    wall = {name: min(cost.wall_seconds for cost in each) for name, each in costs.items()}
    details = {
        "row_by_row_rows_per_cpu_second": round(rows // 10 / cpu[ROW_BY_ROW]),
        "wall_seconds": wall,
        "peak_rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }
    return Measurement(figures=figures, details=details)


def send_row_by_row(file: Path, bootstrap: str, limit: int) -> None:
    source = ParquetSource(file, "the benchmark")
    writer = TopicWriter(bootstrap)
    for batch in source.batches(8_192, limit):
        for row in batch.to_pylist():
            writer.send(TOPIC, [orjson.dumps(row)], [str(row["PULocationID"]).encode()])
    writer.flush()


def use_one_core() -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
