"""P10: what the hash of a row costs in Spark SQL, beside the form that everybody writes.

Rows of 20 columns (texts, whole numbers, decimals, doubles, times, a date, a boolean) are read from
Parquet and their hash is written to Spark's no-op sink: once as sha2(concat_ws('|', …)) over the same
columns, once by version 2 of the hash contract. The figure is the ratio of CPU seconds; the scan is
in both. Beside them stand the bare scan, and a length before every value. Three more mixes show what
texts alone, numbers alone, and doubles and times alone cost.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from bench.goals import Figure, Measurement
from bench.session import open_session
from bench.timing import best_cpu, measure_in_turns, report_progress
from headgate.hashing.contract import contract_of
from headgate.hashing.spark import row_hash_sql

TARGET = 1.5
CONCATENATED, CONTRACT = "concat_ws", "version 2"
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


def measure_hash(rows: int = 1_000_000, repeat: int = 3) -> Measurement:
    figures: list[Figure] = []
    details: dict[str, object] = {"rows": rows}
    with open_session() as bench:
        table = write_rows(bench.spark, bench.folder, rows)
        for mix, names in MIXES.items():
            report_progress(mix)
            expressions = hash_expressions(names, dict(table.dtypes))
            forms = {
                form: lambda sql=sql: write_noop(table, sql) for form, sql in expressions.items()
            }
            cpu = best_cpu(measure_in_turns(forms, repeat))
            what = f"hash of {mix}"
            base = cpu[CONCATENATED]
            figures.append(Figure.of_ratio(what, cpu[CONTRACT], base, TARGET, "× concat_ws"))
            details[mix] = cpu
    return Measurement(figures=tuple(figures), details=details)


def draw_number(at: int, below: int) -> str:
    return f"pmod(xxhash64(id, {at}), {below})"


def null_some(value: str, at: int) -> str:
    """The value, or NULL in one row of a hundred."""
    return f"IF({draw_number(100 + at, 100)} = 0, NULL, {value})"


def write_rows(spark: SparkSession, folder: Path, rows: int) -> DataFrame:
    """Rows with many different values, as tables have them."""
    columns = {
        "customer_id": "concat('c-', lpad(CAST(id AS STRING), 9, '0'))",
        "email": f"concat('user', {draw_number(2, 1_000_000)}, '@example', {draw_number(3, 100)}, '.com')",
        "phone": f"concat('+49', {draw_number(4, 10_000_000_000)})",
        "country": f"element_at(array('DE', 'FR', 'IT', 'ES'), CAST({draw_number(5, 4)} + 1 AS INT))",
        "city": f"element_at(array{CITIES}, CAST({draw_number(6, 6)} + 1 AS INT))",
        "note": f"repeat('word ', CAST({draw_number(7, 8)} AS INT))",
        "status": f"IF({draw_number(8, 3)} = 0, 'closed', 'open')",
        "age": f"CAST({draw_number(9, 90)} AS INT)",
        "visits": f"CAST({draw_number(10, 100_000)} AS INT)",
        "account": draw_number(11, 10**12),
        "price": f"CAST({draw_number(12, 10_000_000)} / 100 AS DECIMAL(10, 2))",
        "tax": f"CAST({draw_number(13, 100_000)} / 100 AS DECIMAL(10, 2))",
        "total": f"CAST({draw_number(14, 10**9)} / 100 AS DECIMAL(12, 2))",
        "score": f"{draw_number(15, 10**9)} / 1000003D",
        "balance": f"{draw_number(16, 10_000_000)} / 100D",
        "active": f"{draw_number(17, 2)} = 0",
        "created": f"timestamp_micros(1690000000000000 + {draw_number(18, 10**15)})",
        "updated": f"timestamp_micros(1700000000000000 + {draw_number(19, 10**14)})",
        "seen": f"timestamp_millis(1700000000000 + {draw_number(20, 10**10)})",
        "born": f"date_add(DATE '1950-01-01', CAST({draw_number(21, 20_000)} AS INT))",
    }
    selected = [f"{null_some(sql, at)} AS {name}" for at, (name, sql) in enumerate(columns.items())]
    file = str(folder / "rows.parquet")
    spark.range(rows).selectExpr(*selected).coalesce(4).write.parquet(file)
    return spark.read.parquet(file)


def hash_expressions(names: tuple[str, ...], types: dict[str, str]) -> dict[str, str]:
    """The SQL expressions that are measured, by name."""
    joined = ", ".join(names)
    texts = [f"coalesce(CAST({name} AS STRING), '')" for name in names]
    prefixed = ", ".join(f"length({text}), ':', {text}" for text in texts)
    contract = contract_of("bench", {name: TYPES[name] for name in names})
    return {
        "bare scan": f"struct({joined})",
        CONCATENATED: f"sha2(concat_ws('|', {joined}), 256)",
        CONTRACT: row_hash_sql(contract, types),
        "a length before every value": f"sha2(concat({prefixed}), 256)",
    }


def write_noop(rows: DataFrame, expression: str) -> None:
    rows.selectExpr(f"{expression} AS hash").write.format("noop").mode("overwrite").save()
