"""Rows as JSON that loses nothing, and the shared test vectors written in it.

Long numbers, doubles and times are text, maps are lists of pairs. A vector is a row with its contract
and the text and hashes that Python, Spark and Java must produce; `differences` compares Python's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from functools import partial
from math import isinf, isnan
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import orjson

from headgate.errors import OperationError, RowRefusedError
from headgate.hashing.contract import HashContract, contract_of
from headgate.hashing.python import UnfitError, Value, row_hash, row_text
from headgate.hashing.types import HashType

Plain = Any  # JSON has no closed shape here
_DOUBLES = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


def parse_row(contract: HashContract, text: str | bytes) -> dict[str, Value]:
    """The row in a JSON object, its values as the contract types them; others are left out."""
    try:
        plain: Plain = json.loads(text, parse_float=Decimal)
    except (ValueError, RecursionError) as error:
        raise RowRefusedError(
            "the row is no JSON", why=str(error), fix="check its quotes"
        ) from None
    if type(plain) is not dict:
        raise RowRefusedError("the row is no JSON object", fix='write {"field": value}')
    return read_row(contract, cast("dict[str, Plain]", plain))


def read_row(contract: HashContract, plain: Mapping[str, Plain]) -> dict[str, Value]:
    """Values from JSON; what a field cannot be is refused with its name."""
    found = dict[str, Value]()
    for field in contract.fields:
        if field.name in plain:
            try:
                found[field.name] = read_value(field.kind, plain[field.name])
            except UnfitError as unfit:
                raise RowRefusedError(
                    f"`{field.name}` is no {field.kind}",
                    why=str(unfit),
                    fix="docs/hash_contract.md shows how each type is written in JSON",
                ) from None
    return found


def read_value(kind: HashType, plain: Plain) -> Value:
    """One value from JSON: text as in the vectors, or a JSON number where that is exact."""
    if plain is None or kind.name in ("string", "boolean", "uuid"):
        return plain
    try:
        return _READERS[kind.name](kind, plain)
    except (ValueError, InvalidOperation, TypeError, AttributeError):
        raise UnfitError(f"JSON of this form is no {kind.name}") from None


def write_value(kind: HashType, value: Value) -> Plain:
    """One value as the vectors have it."""
    if value is None:
        return None
    return _WRITERS[kind.name](kind, value)


def _read_number(_: HashType, plain: Plain, made: type[int] | type[Decimal]) -> Value:
    if isinstance(plain, bool):
        raise UnfitError("it is no number")
    if isinstance(plain, str) and not plain.isascii():
        raise UnfitError("it has other signs than digits")
    return made(plain) if isinstance(plain, str) else plain


def _read_double(_: HashType, plain: Plain) -> Value:
    if isinstance(plain, str):
        return _DOUBLES[plain] if plain in _DOUBLES else float(plain)
    return plain


def _read_time(_: HashType, plain: Plain) -> Value:
    found = datetime.fromisoformat(plain)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _read_list(kind: HashType, plain: Plain) -> Value:
    if type(plain) is not list:
        raise UnfitError("it is no JSON array")
    return [read_value(kind.items[0], item) for item in cast("list[Plain]", plain)]


def _read_map(kind: HashType, plain: Plain) -> Value:
    key, item = kind.items
    pairs: Plain = plain.items() if hasattr(plain, "items") else plain
    return {_hashable(read_value(key, one)): read_value(item, other) for one, other in pairs}


def _hashable(value: Value) -> Value:
    return tuple(cast("list[Value]", value)) if type(value) is list else value


_READERS: dict[str, Callable[[HashType, Plain], Value]] = {
    "integer": partial(_read_number, made=int),
    "decimal": partial(_read_number, made=Decimal),
    "double": _read_double,
    "date": lambda _, plain: date.fromisoformat(plain),
    "timestamp": _read_time,
    "binary": lambda _, plain: bytes.fromhex(plain),
    "list": _read_list,
    "set": _read_list,
    "map": _read_map,
}


def _write_double(_: HashType, given: float | Decimal) -> str:
    value = float(given)
    if isnan(value):
        return "NaN"
    return f"{'-' if value < 0 else ''}Infinity" if isinf(value) else repr(value)


def _write_map(kind: HashType, value: Mapping[Value, Value]) -> Plain:
    key, item = kind.items
    return [[write_value(key, one), write_value(item, other)] for one, other in value.items()]


def _write_list(kind: HashType, value: Value) -> Plain:
    return [write_value(kind.items[0], item) for item in value]


_WRITERS: dict[str, Callable[[HashType, Value], Plain]] = {
    "string": lambda _, value: value,
    "boolean": lambda _, value: value,
    "uuid": lambda _, value: str(value) if isinstance(value, UUID) else value,
    "integer": lambda _, value: str(value),
    "decimal": lambda _, value: str(value),
    "double": _write_double,
    "date": lambda _, value: value.isoformat(),
    "timestamp": lambda _, value: value.isoformat(),
    "binary": lambda _, value: value.hex(),
    "list": _write_list,
    "set": _write_list,
    "map": _write_map,
}


VECTORS_FILE = Path("java/connect-plugins") / "vectors" / "hash_vectors.jsonl"


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
