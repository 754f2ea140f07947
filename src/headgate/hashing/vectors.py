"""The shared vectors: rows and what every implementation must make of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import orjson

from headgate.errors import OperationError, RowRefusedError
from headgate.hashing.hash_contract import HashContract, contract_of
from headgate.hashing.rows import row_hash, row_text
from headgate.hashing.typed_json import read_row, write_value
from headgate.hashing.values import Value

FILE = Path("java/connect-plugins") / "vectors" / "hash_vectors.jsonl"


@dataclass(frozen=True)
class Vector:
    """One row under one contract; `spark` are column types that hold it, None when none do."""

    id: int
    trap: str
    fields: tuple[Mapping[str, str], ...]
    row: Mapping[str, Any]  # typed JSON
    text: str
    v1: str
    v2: str
    spark: Mapping[str, str] | None = None

    @property
    def types(self) -> dict[str, str]:
        return {field["name"]: field["type"] for field in self.fields}

    @property
    def line(self) -> bytes:
        return orjson.dumps(asdict(self), option=orjson.OPT_APPEND_NEWLINE)


@dataclass(frozen=True)
class Difference:
    """A vector of which something else was made here than it says."""

    id: int
    trap: str
    what: str
    expected: str
    got: str


def read_vectors(path: Path) -> Iterator[Vector]:
    """The vectors of a file; one that is none is refused with its line."""
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                yield Vector(**orjson.loads(line))
            except (ValueError, TypeError) as error:
                raise OperationError(
                    f"line {number} of {path.name} is no vector",
                    why=str(error),
                    fix="docs/hash_contract.md says what a vector is",
                ) from None


def make_vector(
    number: int,
    trap: str,
    types: Mapping[str, str],
    row: Mapping[str, Value],
    spark: Mapping[str, str] | None,
) -> Vector:
    """The vector of a row, as Python makes it."""
    contract = contract_of("vector", types)
    fields = tuple({"name": field.name, "type": str(field.kind)} for field in contract.fields)
    plain = {f.name: write_value(f.kind, row[f.name]) for f in contract.fields}
    text, v1, v2 = _made(types, row)
    return Vector(number, trap, fields, plain, text, v1, v2, spark)


def differences(vector: Vector) -> Iterator[Difference]:
    """What Python makes otherwise than the vector says."""
    try:
        row = read_row(contract_of("vector", vector.types), vector.row)
        made = _made(vector.types, row)
    except RowRefusedError as error:
        yield Difference(vector.id, vector.trap, "row", "a hash", error.one_line)
        return
    expected = (vector.text, vector.v1, vector.v2)
    for what, wanted, got in zip(("text", "v1", "v2"), expected, made, strict=True):
        if wanted != got:
            yield Difference(vector.id, vector.trap, what, wanted, got)


def _made(types: Mapping[str, str], row: Mapping[str, Value]) -> tuple[str, str, str]:
    old: HashContract = contract_of("vector", types, 1)
    new: HashContract = contract_of("vector", types, 2)
    return row_text(new, row).hex(), row_hash(old, row), row_hash(new, row)
