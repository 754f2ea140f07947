"""P15: how the cost of bronze and silver grows with the rows.

    python bench/growth.py BOOTSTRAP [--rows N] [--repeat N]

N, 4 N and 16 N records, each on a topic of its own, go through bronze and then silver (rebuilt
whole) in one warm session: once as batches, and once as streams that are stopped when all is read.
Of every size the best of the repeats counts. The exponent is the slope of the least-squares line
through log(cost) over log(rows); nothing is subtracted, so fixed costs flatten it: `last_step` is
the exponent between the two largest sizes, where they weigh least.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Mapping, Sequence

import orjson
from rig import Cost, Rig, measured, rig

GOAL = 1.05
FACTORS = (1, 4, 16)
KINDS = ("bronze", "silver")
FORMS = (*KINDS, *(f"{kind}, streaming" for kind in KINDS))


def costs(bench: Rig, topic: str) -> dict[str, Cost]:
    """Bronze and then silver over all of one topic, as batches and as streams."""
    bench.drop()
    with bench.home(topic) as home:
        batch = {kind: measured(lambda kind=kind: home.run(kind)) for kind in KINDS}
        read = {kind: sum(row.read for row in home.ledger(kind)) for kind in KINDS}
    bench.drop()
    with bench.home(topic) as home:
        stream = {
            f"{kind}, streaming": measured(lambda kind=kind: home.stream(kind, read[kind]))
            for kind in KINDS
        }
    return batch | stream


def best(runs: Sequence[Mapping[str, Cost]], kind: str) -> Cost:
    return Cost(
        min(run[kind].cpu_seconds for run in runs), min(run[kind].wall_seconds for run in runs)
    )


def exponent(rows: Sequence[int], values: Sequence[float]) -> float:
    xs, ys = [math.log(n) for n in rows], [math.log(v) for v in values]
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    slope = sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True))
    return round(slope / sum((a - x) ** 2 for a in xs), 3)


def grown(rows: Sequence[int], found: Sequence[Cost]) -> dict[str, object]:
    cpu, wall = [c.cpu_seconds for c in found], [c.wall_seconds for c in found]
    return {
        "exponent": exponent(rows, cpu),
        "last_step": exponent(rows[-2:], cpu[-2:]),
        "wall_exponent": exponent(rows, wall),
        "cpu_seconds": dict(zip(map(str, rows), cpu, strict=True)),
        "wall_seconds": dict(zip(map(str, rows), wall, strict=True)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("bootstrap")
    parser.add_argument("--rows", type=int, default=25_000, help="The smallest size.")
    parser.add_argument("--repeat", type=int, default=3)
    chosen = parser.parse_args()
    sizes = [chosen.rows * factor for factor in FACTORS]
    with rig(chosen.bootstrap) as bench:
        for size in sizes:
            bench.fill(f"bench-{size}", size)
        costs(bench, f"bench-{sizes[-1]}")  # warms the JVM up with the largest
        runs = {s: [costs(bench, f"bench-{s}") for _ in range(chosen.repeat)] for s in sizes}
    found = {kind: grown(sizes, [best(runs[size], kind) for size in sizes]) for kind in FORMS}
    lines = [
        {"what": f"{kind}, CPU", "figure": found[kind]["exponent"], "unit": "", "limit": GOAL}
        for kind in FORMS
    ]
    report = {"goal": "P15", "lines": lines, **found}
    sys.stdout.write(orjson.dumps(report, option=orjson.OPT_INDENT_2).decode() + "\n")


if __name__ == "__main__":
    main()
