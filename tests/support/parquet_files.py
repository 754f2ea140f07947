"""Parquet files with a column of every kind, and files that are odd in one way each."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

MORNING = datetime(2024, 1, 1, 8)
ROWS = 200


def write_parquet(
    file: Path, columns: dict[str, pa.Array], row_group_size: int | None = None
) -> Path:
    table = pa.Table.from_arrays(list(columns.values()), names=list(columns))
    pq.write_table(table, file, row_group_size)
    return file


def integers(rows: int = ROWS) -> pa.Array:
    return pa.array(range(rows), pa.int64())


def timestamps(rows: int = ROWS, kind: pa.DataType | None = None) -> pa.Array:
    times = [MORNING + timedelta(minutes=n) for n in range(rows)]
    return pa.array(times, kind or pa.timestamp("us"))


def repeat_values(values: list[object], kind: pa.DataType, rows: int = ROWS) -> pa.Array:
    """These values over and over, so many rows long."""
    return pa.array([values[n % len(values)] for n in range(rows)], kind)


def every_kind(rows: int = ROWS) -> dict[str, pa.Array]:
    """Columns of all types that an event can have."""
    return {
        "id": integers(rows),
        "at": timestamps(rows),
        "seen": timestamps(rows, pa.timestamp("ms", tz="America/New_York")),
        "small": repeat_values([1, 2, None], pa.int16(), rows),
        "unsigned": repeat_values([2**64 - 1, 0], pa.uint64(), rows),
        "price": repeat_values([Decimal("1.10"), Decimal("-0.01"), None], pa.decimal128(10, 2), rows),
        "huge": repeat_values([Decimal(10**37), Decimal(-(10**37))], pa.decimal128(38, 0), rows),
        "tiny": repeat_values([Decimal("1.23456789012345678E-10"), Decimal("-1E-20")], pa.decimal128(38, 28), rows),
        "beyond": repeat_values([Decimal(10**50)], pa.decimal256(60, 0), rows),
        "ratio": repeat_values([0.5, None, 1.5], pa.float64(), rows),
        "single": repeat_values([0.1, 2.5], pa.float32(), rows),
        "flag": repeat_values([True, False, None], pa.bool_(), rows),
        "day": repeat_values([date(2024, 1, 1), None], pa.date32(), rows),
        "clock": repeat_values([datetime(2024, 1, 1, 8, 30).time()], pa.time64("us"), rows),
        "took": repeat_values([5, None], pa.duration("ms"), rows),
        "kind": repeat_values(["a", "b", None], pa.dictionary(pa.int8(), pa.string()), rows),
        "long": repeat_values(["x", "y"], pa.large_string(), rows),
        "empty": pa.nulls(rows),
        "absent": pa.nulls(rows, pa.float64()),
        "tags": repeat_values([["x", "y"], [], None], pa.list_(pa.string()), rows),
        "place": repeat_values([{"lat": 1.5, "lon": -2.0}], pa.struct([("lat", pa.float64()), ("lon", pa.float64())]), rows),
        "notes": repeat_values([[("k", 1)], None], pa.map_(pa.string(), pa.int64()), rows),
    }  # fmt: skip


def odd_names(rows: int = ROWS) -> dict[str, pa.Array]:
    """Names that SQL, YAML and JSON would each stumble over."""
    names = ["order", "select", "a b", "naïve größe", "数量", "it's; -- x", "100%", "no", "null", "a\\b", "1st", "{x}", "a=b,c", "# x", "-", "FooBar", "foo_bar"]  # fmt: skip
    return {
        "id": integers(rows),
        "at": timestamps(rows),
        **{name: repeat_values(["x", "y"], pa.string(), rows) for name in names},
    }


def wide(columns: int, rows: int = ROWS) -> dict[str, pa.Array]:
    kinds = (
        repeat_values([1, 2, None], pa.int64(), rows),
        repeat_values(["a", "b"], pa.string(), rows),
        repeat_values([0.5, 1.25], pa.float64(), rows),
    )
    more = {f"column_{n:03}": kinds[n % len(kinds)] for n in range(columns - 2)}
    return {"id": integers(rows), "at": timestamps(rows), **more}
