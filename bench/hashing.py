"""P10: what the hash of a row costs in Spark SQL, against the form that everybody writes.

    python bench/hashing.py [--rows N] [--repeat N] [--mixes N]

Rows of 20 columns (texts, whole numbers, decimals, doubles, times, a date, a boolean) are read from
Parquet and their hash is written to Spark's no-op sink: once as sha2(concat_ws('|', …)) over the same
columns, once by version 2 of the hash contract. The ratio of the CPU seconds counts, less nothing: the
scan is in both. Beside them stand the bare scan, and a length before every value. Two more mixes
show what texts alone and numbers alone cost.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

import orjson
from pyspark.sql import DataFrame, SparkSession
from rig import Cost, measured, rig

from headgate.hashing.spark import row_hash_sql
from headgate.spec.hash_contract import contract_of

LIMIT = 1.5
CITIES = ("Berlin", "Paris", "Łódź", "København", "Roma", "Wien")
TEXTS = ("customer_id", "email", "phone", "country", "city", "note", "status")
TYPES = {
    **dict.fromkeys(TEXTS, "string"),
    **dict.fromkeys(("age", "visits", "account"), "integer"),
    **dict.fromkeys(("price", "tax", "total"), "decimal(2)"),
    **dict.fromkeys(("score", "balance"), "double(6)"),
    "active": "boolean",
    **dict.fromkeys(("created", "updated", "seen"), "timestamp(ms)"),
    "born": "date",
}
MIXES = {
    "20 mixed columns": tuple(TYPES),
    "7 texts": TEXTS,
    "8 whole numbers and decimals": (
        "age",
        "visits",
        "account",
        "price",
        "tax",
        "total",
        "active",
        "born",
    ),
    "5 doubles and times": ("score", "balance", "created", "updated", "seen"),
}


def drawn(at: int, below: int) -> str:
    return f"pmod(xxhash64(id, {at}), {below})"


def some(value: str, at: int) -> str:
    """Null in one row of a hundred."""
    return f"IF({drawn(100 + at, 100)} = 0, NULL, {value})"


def write_rows(session: SparkSession, folder: Path, rows: int) -> DataFrame:
    """Rows with many different values, as tables have them."""
    columns = {
        "customer_id": "concat('c-', lpad(CAST(id AS STRING), 9, '0'))",
        "email": f"concat('user', {drawn(2, 1_000_000)}, '@example', {drawn(3, 100)}, '.com')",
        "phone": f"concat('+49', {drawn(4, 10_000_000_000)})",
        "country": f"element_at(array('DE', 'FR', 'IT', 'ES'), CAST({drawn(5, 4)} + 1 AS INT))",
        "city": f"element_at(array{CITIES}, CAST({drawn(6, 6)} + 1 AS INT))",
        "note": f"repeat('word ', CAST({drawn(7, 8)} AS INT))",
        "status": f"IF({drawn(8, 3)} = 0, 'closed', 'open')",
        "age": f"CAST({drawn(9, 90)} AS INT)",
        "visits": f"CAST({drawn(10, 100_000)} AS INT)",
        "account": drawn(11, 10**12),
        "price": f"CAST({drawn(12, 10_000_000)} / 100 AS DECIMAL(10, 2))",
        "tax": f"CAST({drawn(13, 100_000)} / 100 AS DECIMAL(10, 2))",
        "total": f"CAST({drawn(14, 10**9)} / 100 AS DECIMAL(12, 2))",
        "score": f"{drawn(15, 10**9)} / 1000003D",
        "balance": f"{drawn(16, 10_000_000)} / 100D",
        "active": f"{drawn(17, 2)} = 0",
        "created": f"timestamp_micros(1690000000000000 + {drawn(18, 10**15)})",
        "updated": f"timestamp_micros(1700000000000000 + {drawn(19, 10**14)})",
        "seen": f"timestamp_millis(1700000000000 + {drawn(20, 10**10)})",
        "born": f"date_add(DATE '1950-01-01', CAST({drawn(21, 20_000)} AS INT))",
    }
    told = [f"{some(sql, at)} AS {name}" for at, (name, sql) in enumerate(columns.items())]
    file = str(folder / "rows.parquet")
    session.range(rows).selectExpr(*told).coalesce(4).write.parquet(file)
    return session.read.parquet(file)


def forms(names: tuple[str, ...], types: dict[str, str]) -> dict[str, str]:
    """The expressions that are measured, by name."""
    joined = ", ".join(names)
    texts = [f"coalesce(CAST({name} AS STRING), '')" for name in names]
    prefixed = ", ".join(f"length({text}), ':', {text}" for text in texts)
    contract = contract_of("bench", {name: TYPES[name] for name in names})
    return {
        "bare scan": f"struct({joined})",
        "concat_ws": f"sha2(concat_ws('|', {joined}), 256)",
        "version 2": row_hash_sql(contract, types),
        "a length before every value": f"sha2(concat({prefixed}), 256)",
    }


def write(rows: DataFrame, expression: str) -> None:
    rows.selectExpr(f"{expression} AS hash").write.format("noop").mode("overwrite").save()


def best(rows: DataFrame, wanted: dict[str, str], repeat: int) -> dict[str, Cost]:
    """The forms take turns, so that a busy moment meets all of them."""
    for expression in wanted.values():
        write(rows, expression)  # compiles it, and warms the JVM up
    runs = [
        {name: measured(lambda e=e: write(rows, e)) for name, e in wanted.items()}
        for _ in range(repeat)
    ]
    return {name: min((run[name] for run in runs), key=lambda c: c.cpu_seconds) for name in wanted}


def compared(rows: DataFrame, names: tuple[str, ...], repeat: int) -> dict[str, Any]:
    found = best(rows, forms(names, dict(rows.dtypes)), repeat)
    usual = found["concat_ws"].cpu_seconds
    return {
        "ratios": {name: round(cost.cpu_seconds / usual, 2) for name, cost in found.items()},
        "cpu_seconds": {name: cost.cpu_seconds for name, cost in found.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--mixes", type=int, default=len(MIXES), help="Only the first so many.")
    given = parser.parse_args()
    mixes = list(MIXES.items())[: given.mixes]
    with rig("127.0.0.1:1") as bench, tempfile.TemporaryDirectory() as folder:
        rows = write_rows(bench.session, Path(folder), given.rows)
        found = {name: compared(rows, names, given.repeat) for name, names in mixes}
    lines = [
        {
            "what": f"hash of {name}",
            "figure": told["ratios"]["version 2"],
            "unit": "× concat_ws",
            "limit": LIMIT,
        }
        for name, told in found.items()
    ]
    report = {"goal": "P10", "rows": given.rows, "lines": lines, "details": found}
    sys.stdout.write(orjson.dumps(report, option=orjson.OPT_INDENT_2).decode() + "\n")


if __name__ == "__main__":
    main()
