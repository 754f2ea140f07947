"""The two tables that comparisons are measured on: 18 columns, 0.1 % of the rows differing in one."""

# pyarrow makes its functions at run time, so the checker does not know them.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

SEED, SHARE = 6, 1_000
TEXTS, REALS, INTS, DECIMALS = 5, 4, 3, 2
COLUMNS = (
    "k",
    *(f"s{at}" for at in range(TEXTS)),
    *(f"d{at}" for at in range(REALS)),
    *(f"i{at}" for at in range(INTS)),
    *(f"n{at}" for at in range(DECIMALS)),
    "l0",
    "b0",
    "t0",
)
# Each differing row differs in one of these.
DIFFERING = ("s0", "d0", "i0")


@dataclass(frozen=True)
class Planted:
    """What a comparison must find."""

    matches: int
    columns: dict[str, int]


def count_planted(rows: int) -> Planted:
    each = {name: len(_differing_positions(rows, at)) for at, name in enumerate(DIFFERING)}
    return Planted(rows - sum(each.values()), each)


def write_tables(folder: Path, rows: int) -> tuple[str, str]:
    """Both as folders of four files; the right one in another order."""
    draws = np.random.default_rng(SEED)
    left = _make_rows(draws, rows)
    right = left
    for at, name in enumerate(DIFFERING):
        right = _change_values(right, name, _differing_positions(rows, at))
    shuffled = right.take(pa.array(draws.permutation(rows)))
    return _write_parts(folder / "left", left), _write_parts(folder / "right", shuffled)


def _make_rows(draws: np.random.Generator, rows: int) -> pa.Table:
    def texts(at: int) -> pa.Array:
        numbers = draws.integers(0, 10 ** (3 + at), rows).astype(str)
        return pa.array(np.char.add(f"text number {at} ", numbers))

    def null_some(values: np.ndarray) -> pa.Array:
        return pa.array(values, mask=draws.random(rows) < 0.02)

    columns: dict[str, pa.Array] = {
        "k": pa.array(np.char.add("c-", np.char.zfill(np.arange(rows).astype(str), 9)))
    }
    columns |= {f"s{at}": texts(at) for at in range(TEXTS)}
    columns |= {f"d{at}": null_some(draws.uniform(0, 1e6, rows)) for at in range(REALS)}
    columns |= {
        f"i{at}": null_some(draws.integers(0, 1_000, rows).astype(np.int32)) for at in range(INTS)
    }
    columns |= {f"n{at}": _make_decimals(draws.integers(0, 10**7, rows)) for at in range(DECIMALS)}
    columns["l0"] = pa.array(draws.integers(0, 10**12, rows))
    columns["b0"] = pa.array(draws.random(rows) < 0.5)
    moments = 1_700_000_000_000_000 + draws.integers(0, 10**12, rows)
    columns["t0"] = pa.array(moments, pa.timestamp("us", tz="UTC"))
    return pa.table(columns)


def _make_decimals(numbers: np.ndarray) -> pa.Array:
    """Arrow goes by the type, not by the values: any int64 must fit on the way."""
    return pc.cast(pc.cast(pa.array(numbers), pa.decimal128(21, 2)), pa.decimal128(12, 2))


def _differing_positions(rows: int, at: int) -> np.ndarray:
    """Every three-thousandth row for each of three columns: one in a thousand in all."""
    step = SHARE * len(DIFFERING)
    return np.arange(at + 1, rows, step)


def _change_values(table: pa.Table, name: str, places: np.ndarray) -> pa.Table:
    """NULL becomes a value, any other value becomes NULL: no two of them are equal."""
    column = table.column(name).combine_chunks()
    mask = np.zeros(len(column), dtype=bool)
    mask[places] = True
    filler = pa.scalar("changed" if pa.types.is_string(column.type) else 7, column.type)
    nulled = pc.if_else(pc.is_null(column), filler, pa.scalar(None, column.type))
    changed = pc.if_else(pa.array(mask), nulled, column)
    return table.set_column(table.schema.get_field_index(name), name, changed)


def _write_parts(folder: Path, table: pa.Table) -> str:
    folder.mkdir(parents=True)
    step = -(-table.num_rows // 4)
    for at in range(4):
        part = table.slice(at * step, step)
        pq.write_table(part, folder / f"part-{at}.parquet")
    return str(folder)
