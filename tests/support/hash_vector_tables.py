"""Hash vectors as Parquet files, one for each contract, with the column types that the vectors name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC
from decimal import Context, Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.hashing.contract import contract_of
from headgate.hashing.python import Value
from headgate.hashing.typed_json import Vector, read_row
from headgate.hashing.types import SparkType, parse_spark_type

_PLAIN: dict[str, pa.DataType] = {
    "string": pa.string(),
    "boolean": pa.bool_(),
    "bigint": pa.int64(),
    "int": pa.int32(),
    "smallint": pa.int16(),
    "double": pa.float64(),
    "float": pa.float32(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "binary": pa.binary(),
}
_WIDE = Context(prec=60)


@dataclass(frozen=True)
class VectorTable:
    """The rows of the vectors that share a contract."""

    file: Path
    types: dict[str, str]
    spark: dict[str, str]

    @property
    def schema(self) -> str:
        return ", ".join(
            f"`{name}` {kind}" for name, kind in {"_id": "bigint", **self.spark}.items()
        )


def write_tables(vectors: list[Vector], folder: Path) -> Iterator[VectorTable]:
    """One file for each contract."""
    groups: dict[str, list[Vector]] = defaultdict(list)
    for vector in vectors:
        groups[f"{vector.types} {vector.spark}"].append(vector)
    for at, found in enumerate(groups.values()):
        table = VectorTable(folder / f"{at}.parquet", found[0].types, dict(found[0].spark or {}))
        _write(table, found)
        yield table


def _write(table: VectorTable, vectors: list[Vector]) -> None:
    contract = contract_of("vectors", table.types)
    rows = [read_row(contract, vector.row) for vector in vectors]
    columns: dict[str, Any] = {"_id": pa.array([vector.id for vector in vectors])}
    for name, text in table.spark.items():
        kind = parse_spark_type(text)
        columns[name] = pa.array([_held(kind, row[name]) for row in rows], _arrow(kind))
    pq.write_table(pa.table(columns), table.file)


def _arrow(kind: SparkType) -> pa.DataType:
    match kind.name:
        case "decimal":
            return pa.decimal128(*kind.numbers)
        case "array":
            return pa.list_(_arrow(kind.items[0]))
        case "map":
            return pa.map_(*(_arrow(item) for item in kind.items))
        case name:
            return _PLAIN[name]


def _held(kind: SparkType, value: Value) -> Value:
    """The value as a column of this type has it."""
    if value is None:
        return None
    match kind.name:
        case "decimal":
            exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
            return exact.quantize(Decimal(1).scaleb(-kind.scale), context=_WIDE)
        case "array":
            return [_held(kind.items[0], item) for item in value]
        case "map":
            return [(_held(kind.items[0], k), _held(kind.items[1], v)) for k, v in value.items()]
        case "timestamp_ntz":
            return value.astimezone(UTC).replace(tzinfo=None)
        case _:
            return int(value) if kind.is_whole else value
