"""P15: how the cost of bronze and silver grows with the rows.

N, 4 N and 16 N records, each on a topic of its own, go through bronze and then silver (rebuilt
whole) in one warm session: once as batches, and once as streams that are stopped when all is read.
Of every size the best of the repeats counts. The exponent is the slope of the least-squares line
through log(CPU seconds) over log(rows). Nothing is subtracted, so fixed costs flatten it:
`last_step` is the exponent between the two largest sizes, where they weigh least.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from bench.goals import Figure, Measurement
from bench.session import BenchSession, open_session
from bench.timing import Cost, best_cpu, measure_cost, report_progress

TARGET = 1.05
FACTORS = (1, 4, 16)
KINDS = ("bronze", "silver")


def measure_growth(bootstrap: str, rows: int = 25_000, repeat: int = 3) -> Measurement:
    """`rows` is the smallest size."""
    sizes = [rows * factor for factor in FACTORS]
    with open_session(bootstrap) as bench:
        for size in sizes:
            bench.fill_topic(f"bench-growth-{size}", size)
        run_jobs(bench, f"bench-growth-{sizes[-1]}")  # warms up the JVM with the largest
        best = [measure_size(bench, size, repeat) for size in sizes]
    cpu = {job: [each[job] for each in best] for job in best[0]}
    figures = tuple(
        Figure(
            what=f"{job}, exponent of CPU over rows",
            value=fit_exponent(sizes, seconds),
            unit="",
            target=TARGET,
        )
        for job, seconds in cpu.items()
    )
    return Measurement(figures=figures, details=describe_growth(sizes, cpu))


def measure_size(bench: BenchSession, size: int, repeat: int) -> dict[str, float]:
    """CPU seconds of each job over so many rows, the best of the repeats."""
    costs: dict[str, list[Cost]] = {}
    for turn in range(1, repeat + 1):
        report_progress(f"{size:,} rows: turn {turn} of {repeat}")
        for job, cost in run_jobs(bench, f"bench-growth-{size}").items():
            costs.setdefault(job, []).append(cost)
    return best_cpu(costs)


def run_jobs(bench: BenchSession, topic: str) -> dict[str, Cost]:
    """Bronze and then silver over the whole topic, as batches and as streams."""
    costs: dict[str, Cost] = {}
    records: dict[str, int] = {}
    bench.drop_tables()
    with bench.open_jobs(topic) as jobs:
        for kind in KINDS:
            costs[kind] = measure_cost(lambda kind=kind: jobs.run_batch(kind))
            records[kind] = jobs.count_read(kind)
    bench.drop_tables()
    with bench.open_jobs(topic) as jobs:
        for kind in KINDS:
            costs[f"{kind}, streaming"] = measure_cost(
                lambda kind=kind: jobs.run_stream(kind, records[kind])
            )
    return costs


def fit_exponent(rows: Sequence[int], seconds: Sequence[float]) -> float:
    xs = [math.log(count) for count in rows]
    ys = [math.log(value) for value in seconds]
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    slope = sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True))
    return round(slope / sum((a - x) ** 2 for a in xs), 3)


def describe_growth(sizes: list[int], cpu: Mapping[str, list[float]]) -> dict[str, object]:
    return {
        job: {
            "last_step": fit_exponent(sizes[-2:], seconds[-2:]),
            "cpu_seconds": dict(zip(map(str, sizes), seconds, strict=True)),
        }
        for job, seconds in cpu.items()
    }
