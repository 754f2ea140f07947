"""P9: how fast the generator sends a Parquet file, with and without schema validation, on one core.

    python bench/generator.py BOOTSTRAP [--rows N] [--repeat N]

Sends a sample to topics of its own, which it deletes again, and prints JSON: for each way of
sending the best of the repeats, in rows per second of wall time and of CPU time. What one core can
do is the CPU figure: it holds against the goal also while other processes use the machine. The
row-by-row way is the same work done with a dictionary a row, for comparison in the same run.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson

from headgate.engine.topics import Topics, TopicSpec
from headgate.feeds.generator import Generated, Plan, generate
from headgate.feeds.sample_file import write_sample
from headgate.feeds.source import ParquetSource
from headgate.feeds.topic_writer import TopicWriter
from headgate.spec.loader import load_dataset
from headgate.spec.sample_loader import load_sample

ROOT = Path(__file__).resolve().parents[1]
TOPIC, DLQ = f"bench-{os.getpid()}", f"bench-{os.getpid()}-dlq"
GOALS = {"plain": 100_000, "validated": 30_000}
ROW_BY_ROW_SHARE = 10


@dataclass(frozen=True)
class Measured:
    """The best of some repeats of one way of sending."""

    rows: int
    rows_per_second: float
    rows_per_cpu_second: float
    goal: int | None
    met: bool | None


class Nobody:
    def begin(self, total: int) -> None: ...

    def advance(self, rows: int) -> None: ...


def plan(file: Path, bootstrap: str, validated: bool) -> Plan:
    return Plan(
        file=file,
        said="the benchmark",
        dataset=load_dataset(
            ROOT / "datasets/taxi/dataset.yml", {"TOPIC": TOPIC, "DLQ_TOPIC": DLQ}
        ),
        bootstrap=bootstrap,
        broker="bench",
        mode="burst",
        rate=1,
        max_events=0,
        schema_file=ROOT / "schemas/taxi_trip.json" if validated else None,
        metrics_file=file.with_name("metrics.json"),
    )


def rows_of(generated: Generated) -> int:
    return generated.events + generated.invalid


def row_by_row(wanted: Plan, limit: int) -> int:
    source, writer = ParquetSource(wanted.file, wanted.said), TopicWriter(wanted.bootstrap)
    sent = 0
    for batch in source.batches(8_192, limit):
        for row in batch.to_pylist():
            writer.send(TOPIC, [orjson.dumps(row)], [str(row["PULocationID"]).encode()])
            sent += 1
    writer.flush()
    return sent


def measured(send: Callable[[], int], repeat: int, goal: int | None) -> Measured:
    best = Measured(0, 0.0, 0.0, goal, None)
    for _ in range(repeat):
        wall, cpu = time.perf_counter(), time.process_time()
        rows = send()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        if rows / wall > best.rows_per_second:
            met = None if goal is None else rows / cpu >= goal
            best = Measured(rows, round(rows / wall), round(rows / cpu), goal, met)
    return best


def use_one_core() -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def run(bootstrap: str, rows: int, repeat: int, folder: Path) -> dict[str, Measured]:
    file = folder / "events.parquet"
    sample = load_sample(ROOT / "datasets/taxi/sample.yml").value
    write_sample(sample, file, rows)
    plain, validated = plan(file, bootstrap, False), plan(file, bootstrap, True)
    return {
        "plain": measured(lambda: rows_of(generate(plain, Nobody())), repeat, GOALS["plain"]),
        "validated": measured(
            lambda: rows_of(generate(validated, Nobody())), repeat, GOALS["validated"]
        ),
        "row_by_row": measured(lambda: row_by_row(plain, rows // ROW_BY_ROW_SHARE), 1, None),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("bootstrap")
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--repeat", type=int, default=3)
    chosen = parser.parse_args()
    use_one_core()
    topics = Topics(chosen.bootstrap)
    topics.create([TopicSpec(TOPIC, 3, 1), TopicSpec(DLQ, 1, 1)])
    try:
        with tempfile.TemporaryDirectory() as folder:
            found = run(chosen.bootstrap, chosen.rows, chosen.repeat, Path(folder))
    finally:
        topics.delete([TOPIC, DLQ])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    lines = [
        {"what": f"{name}, one core", "figure": found[name].rows_per_cpu_second, "unit": "rows/s",
         "limit": limit, "better": "more"}
        for name, limit in GOALS.items()
    ]  # fmt: skip
    report = {
        "goal": "P9",
        "lines": lines,
        "one_core": hasattr(os, "sched_setaffinity"),
        "peak_rss_mib": peak,
        **{name: asdict(result) for name, result in found.items()},
    }
    sys.stdout.write(orjson.dumps(report, option=orjson.OPT_INDENT_2).decode() + "\n")


if __name__ == "__main__":
    main()
