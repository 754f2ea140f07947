"""P6: two tables of 1 M rows × 18 columns compared by key, 0.1 % of the rows differing.

    python bench/compare.py [--rows N] [--repeat N] [--only ours,sums]

Ours is what `headgate reconcile tables` does, its samples among it: every column of every pair
compared by value, with counts by status and by column. Beside it stand `exceptAll` both ways, which
tells neither columns nor pairs, and a join of 64-bit hashes, which can take two different rows for
equal ones. Of each the best of the repeats counts, in CPU seconds of this process and its JVM. The
forms take turns. datacompy and DQX run beside ours in `bench/peers.py`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from compare_rows import COLUMNS, planted, write_tables
from pyspark.sql import SparkSession
from rig import Cost, measured, rig

from headgate.compile.compare.found import Found
from headgate.compile.compare.model import Asked
from headgate.compile.compare.plan import plan
from headgate.jobs.compare import Comparison
from headgate.jobs.compare_sums import SumsComparison
from headgate.jobs.compare_tables import open_table

FOURTH, OF_HASHES = 0.25, 2.0
KEY = "k"
HASHED = ", ".join(name for name in COLUMNS if name != KEY)


@dataclass(frozen=True)
class Forms:
    """Ways to compare the two tables."""

    session: SparkSession
    left: str
    right: str

    def ours(self) -> Found:
        return Comparison(self.session, self._plan()).run()

    def ours_without_a_key(self) -> Found:
        sides = (open_table(self.session, name) for name in (self.left, self.right))
        return Comparison(self.session, plan(*sides, Asked())).run()

    def sums(self) -> Found:
        return SumsComparison(self.session, self._plan()).run()

    def except_all(self) -> tuple[int, int]:
        left, right = (self.session.read.parquet(name) for name in (self.left, self.right))
        return left.exceptAll(right).count(), right.exceptAll(left).count()

    def hashes(self) -> int:
        sides = (
            f"(SELECT {KEY}, xxhash64({HASHED}) AS h FROM parquet.`{name}`)"
            for name in (self.left, self.right)
        )
        left, right = sides
        found = self.session.sql(
            f"SELECT /*+ SHUFFLE_HASH(r) */ count_if(NOT l.h <=> r.h)"
            f" FROM {left} AS l FULL OUTER JOIN {right} AS r ON l.{KEY} = r.{KEY}"
        )
        return int(found.collect()[0][0])

    def scan(self) -> None:
        for name in (self.left, self.right):
            self.session.read.parquet(name).write.format("noop").mode("overwrite").save()

    def _plan(self) -> Any:
        sides = (open_table(self.session, name) for name in (self.left, self.right))
        return plan(*sides, Asked(key=(KEY,)))


def best(forms: dict[str, Callable[[], object]], repeat: int) -> dict[str, Cost]:
    """The forms in turns, so that a busy moment meets all of them; the first turn warms up."""
    for form in forms.values():
        form()
    runs = [{name: measured(form) for name, form in forms.items()} for _ in range(repeat)]
    return {
        name: min((run[name] for run in runs), key=lambda cost: cost.cpu_seconds) for name in forms
    }


def check(found: Found, rows: int) -> None:
    """What was planted is what is found; else the figures mean nothing."""
    expected = planted(rows)
    told = {name: n for name, n in found.columns.items() if n}
    if told != expected.columns or found.counts.get("MATCH") != expected.matches:
        raise SystemExit(f"found {dict(found.counts)} {told}, planted {expected}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", default="", help="Names of forms, separated by commas.")
    chosen = parser.parse_args()
    with rig("none:9") as bench, tempfile.TemporaryDirectory(prefix="headgate-bench-") as name:
        forms = Forms(bench.session, *write_tables(Path(name), chosen.rows))
        check(forms.ours(), chosen.rows)
        every: dict[str, Callable[[], object]] = {
            "ours": forms.ours,
            "exceptAll both ways": forms.except_all,
            "64-bit hashes": forms.hashes,
            "ours without a key": forms.ours_without_a_key,
            "ours by sums": forms.sums,
            "bare scan": forms.scan,
        }
        only = {word.strip() for word in chosen.only.split(",") if word.strip()}
        wanted = {n: form for n, form in every.items() if not only or n in only}
        costs = best(wanted, chosen.repeat)
    told = report(costs, chosen.rows)
    sys.stdout.write(orjson.dumps(told, option=orjson.OPT_INDENT_2).decode() + "\n")


def report(costs: dict[str, Cost], rows: int) -> dict[str, Any]:
    cpu = {name: cost.cpu_seconds for name, cost in costs.items()}
    lines = [
        {
            "what": f"{rows:,} rows × {len(COLUMNS)} columns, CPU of {other}",
            "figure": round(cpu["ours"] / cpu[other], 3),
            "unit": "×",
            "limit": limit,
        }
        for other, limit in (("exceptAll both ways", FOURTH), ("64-bit hashes", OF_HASHES))
        if other in cpu
    ]
    return {"goal": "P6", "lines": lines, "cpu_seconds": cpu, "rows": rows}


if __name__ == "__main__":
    main()
