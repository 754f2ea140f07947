"""P6: two tables of 18 columns compared by key, 0.1 % of the rows differing.

Ours is what `headgate reconcile tables` does, its samples included: every column of every pair is
compared by value, with counts by status and by column. Beside it stand `exceptAll` both ways, which
gives neither columns nor pairs, a join of 64-bit hashes, which can take two different rows for
equal ones, and the bare scan. `python -m bench peers` compares with datacompy and DQX.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import SparkSession

from bench.compare_rows import COLUMNS, count_planted, write_tables
from bench.goals import Figure, Measurement
from bench.session import open_session
from bench.timing import best_cpu, measure_in_turns
from headgate.reconcile.table_compare.plan import Asked, plan
from headgate.reconcile.table_compare.results import Found
from headgate.reconcile.table_compare.run import Comparison, open_table

TARGET = 0.35
KEY = "k"
HASHED = ", ".join(name for name in COLUMNS if name != KEY)
OURS, EXCEPT_ALL = "ours", "exceptAll both ways"


def measure_comparison(rows: int = 1_000_000, repeat: int = 3) -> Measurement:
    with open_session() as bench:
        tables = TablePair(bench.spark, *write_tables(bench.folder / "tables", rows))
        check_planted(tables.compare(), rows)
        forms: dict[str, Callable[[], object]] = {
            OURS: tables.compare,
            EXCEPT_ALL: tables.except_all,
            "64-bit hashes": tables.join_hashes,
            "bare scan": tables.scan,
        }
        cpu = best_cpu(measure_in_turns(forms, repeat))
    what = f"{rows:,} rows × {len(COLUMNS)} columns, CPU of {EXCEPT_ALL}"
    figure = Figure.of_ratio(what, cpu[OURS], cpu[EXCEPT_ALL], TARGET)
    return Measurement(figures=(figure,), details={"cpu_seconds": cpu, "rows": rows})


@dataclass(frozen=True)
class TablePair:
    """Two Parquet tables, and ways to compare them."""

    spark: SparkSession
    left: str
    right: str

    def compare(self) -> Found:
        left, right = (open_table(self.spark, name) for name in (self.left, self.right))
        return Comparison(self.spark, plan(left, right, Asked(key=(KEY,)))).run()

    def except_all(self) -> tuple[int, int]:
        left, right = (self.spark.read.parquet(name) for name in (self.left, self.right))
        return left.exceptAll(right).count(), right.exceptAll(left).count()

    def join_hashes(self) -> int:
        left, right = (
            f"(SELECT {KEY}, xxhash64({HASHED}) AS h FROM parquet.`{name}`)"
            for name in (self.left, self.right)
        )
        differing = self.spark.sql(
            f"SELECT /*+ SHUFFLE_HASH(r) */ count_if(NOT l.h <=> r.h)"
            f" FROM {left} AS l FULL OUTER JOIN {right} AS r ON l.{KEY} = r.{KEY}"
        )
        return int(differing.collect()[0][0])

    def scan(self) -> None:
        for name in (self.left, self.right):
            self.spark.read.parquet(name).write.format("noop").mode("overwrite").save()


def check_planted(comparison: Found, rows: int) -> None:
    """Figures of a comparison that does not find what was planted would mean nothing."""
    planted = count_planted(rows)
    columns = {name: count for name, count in comparison.columns.items() if count}
    if columns != planted.columns or comparison.counts.get("MATCH") != planted.matches:
        raise SystemExit(f"found {dict(comparison.counts)} {columns}, planted {planted}")
