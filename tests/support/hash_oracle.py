"""An independent notion of when two rows must have equal hashes, without the text that is hashed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from math import isfinite, isnan
from typing import Any

from tools.hash_vectors import ALL

from headgate.hashing.contract import HashContract, contract_of
from headgate.hashing.python import Value
from headgate.hashing.types import HashType, parse_hash_type

KINDS = {name: parse_hash_type(kind[0]) for name, kind in ALL.items()}
_WIDE = Context(prec=200)


def comparable_value(kind: HashType, value: Value) -> Any:
    """A value that is equal for two inputs exactly when the contract takes them for the same."""
    if value is None:
        return "empty" if kind.nulls_empty else None
    match kind.name:
        case "string":
            return value.strip(" ") if kind.trim else value
        case "uuid":
            return value.lower()
        case "decimal":
            exact = Fraction(value)
            if kind.scale is None:
                return exact
            unit = Decimal(1).scaleb(-kind.scale)
            return Fraction(Decimal(value).quantize(unit, ROUND_HALF_UP, _WIDE))
        case "double":
            return _double(value, kind.scale)
        case "timestamp":
            at = value if value.tzinfo else value.replace(tzinfo=UTC)
            micros = int((Fraction((at - datetime(1970, 1, 1, tzinfo=UTC)).days) * 86_400) * 10**6)
            part = (at - datetime(1970, 1, 1, tzinfo=UTC)).seconds * 10**6 + at.microsecond
            return (micros + part) // {"s": 10**6, "ms": 1000, "us": 1}[str(kind.unit)]
        case "list":
            return tuple(comparable_value(kind.items[0], item) for item in value)
        case "set":
            return frozenset(comparable_value(kind.items[0], item) for item in value)
        case "map":
            key, item = kind.items
            return frozenset(
                (comparable_value(key, k), comparable_value(item, v)) for k, v in value.items()
            )
        case _:
            return value


def _double(value: float, scale: int | None) -> Any:
    if isnan(value):
        return "NaN"
    product = value if scale is None else value * float(10**scale)
    if scale is None or not isfinite(product) or abs(product) >= 2**63:
        return ("exact", value)
    return round(Fraction(product))


def similar_rows(
    seed: int, count: int
) -> Iterator[tuple[HashContract, dict[str, Value], dict[str, Value]]]:
    """Pairs of rows that differ little, often only in where one field ends and the next begins."""
    draws = random.Random(seed)
    names = tuple(ALL)
    contracts = [
        contract_of("fuzz", {name: ALL[name][0] for name in chosen})
        for chosen in (draws.sample(names, 3) for _ in range(60))
    ]
    texts = contract_of("fuzz", {"s": "string", "t": "string(trim)", "u2": "string"})
    for _ in range(count):
        if draws.random() < 0.4:
            yield texts, *_moved(draws)
            continue
        contract = draws.choice(contracts)
        row = {field.name: ALL[field.name][2](draws) for field in contract.fields}
        other = dict(row)
        for field in draws.sample(contract.fields, draws.randrange(1, 3)):
            other[field.name] = ALL[field.name][2](draws)
        yield contract, row, other


def _moved(draws: random.Random) -> tuple[dict[str, Value], dict[str, Value]]:
    """Two rows of the same signs, cut in three at different places."""
    signs = "".join(draws.choice("a|:;s01n ") for _ in range(draws.randrange(8)))
    return _cut(draws, signs), _cut(draws, signs)


def _cut(draws: random.Random, signs: str) -> dict[str, Value]:
    first, second = sorted(draws.randrange(len(signs) + 1) for _ in range(2))
    parts = (signs[:first], signs[first:second], signs[second:])
    return {
        n: part or draws.choice(("", None)) for n, part in zip(("s", "t", "u2"), parts, strict=True)
    }
