"""Spark's column types as text, `map<string,array<decimal(38,10)>>`, and which fit a logical type."""

from __future__ import annotations

import re
from dataclasses import dataclass

from headgate.declarations.refusal import Refusal
from headgate.hashing.hash_contract_types import MOST_DIGITS, HashType

_SIGN = re.compile(r"\s*([a-z_]+|\d+|[<>(),])\s*")
_WHOLE = {"tinyint": 3, "smallint": 5, "int": 10, "integer": 10, "bigint": 19, "long": 19}
_TEXTS = ("string", "varchar", "char")
_OTHER_NAMES = {"timestamp_ltz": "timestamp", "real": "float", "dec": "decimal"}
_PLAIN = {
    "string": "string", "uuid": "string", "boolean": "boolean", "integer": "bigint", "double": "double",
    "date": "date", "timestamp": "timestamp", "binary": "binary",
}  # fmt: skip
_FITTING = {
    "string": _TEXTS,
    "uuid": _TEXTS,
    "boolean": ("boolean",),
    "integer": (*_WHOLE, "decimal"),
    "decimal": (*_WHOLE, "decimal"),
    "double": (*_WHOLE, "decimal", "float", "double"),
    "date": ("date",),
    "timestamp": ("timestamp", "timestamp_ntz"),
    "binary": ("binary",),
    "list": ("array",),
    "set": ("array",),
    "map": ("map",),
}


@dataclass(frozen=True)
class SparkType:
    """One type; `numbers` are a decimal's digits and scale, `items` what is in a collection."""

    name: str
    numbers: tuple[int, ...] = ()
    items: tuple[SparkType, ...] = ()

    def __str__(self) -> str:
        inner = f"<{','.join(map(str, self.items))}>" if self.items else ""
        numbers = f"({','.join(map(str, self.numbers))})" if self.numbers else ""
        return f"{self.name}{inner}{numbers}"

    @property
    def is_whole(self) -> bool:
        return self.name in _WHOLE

    @property
    def digits(self) -> int:
        """How many digits stand before the point at most."""
        return _WHOLE[self.name] if self.is_whole else self.numbers[0] - self.numbers[1]

    @property
    def scale(self) -> int:
        return 0 if self.is_whole else self.numbers[1]


def parse_spark_type(text: str) -> SparkType:
    """The type as `DESCRIBE` or `DataFrame.dtypes` tell it; a Refusal when it is none of ours."""
    signs = [match.group(1) for match in _SIGN.finditer(text.lower())]
    if "".join(signs) != re.sub(r"\s", "", text.lower()):
        raise _unknown(text)
    found, rest = _parsed(signs, text)
    if rest:
        raise _unknown(text)
    return found


def _parsed(signs: list[str], text: str) -> tuple[SparkType, list[str]]:
    if not signs:
        raise _unknown(text)
    name, rest = _OTHER_NAMES.get(signs[0], signs[0]), signs[1:]
    items, numbers = list[SparkType](), list[int]()
    if name in ("array", "map"):
        while rest[:1] in (["<"], [","]) and len(items) < (2 if name == "map" else 1):
            item, rest = _parsed(rest[1:], text)
            items.append(item)
        if rest[:1] != [">"] or len(items) != (2 if name == "map" else 1):
            raise _unknown(text)
        rest = rest[1:]
    if rest[:1] == ["("]:
        end = rest.index(")") if ")" in rest else len(rest)
        numbers = [int(sign) for sign in rest[1:end] if sign.isdigit()]
        rest = rest[end + 1 :]
    if name == "decimal":
        numbers = [*numbers, *(10, 0)[len(numbers) :]]
    return SparkType(name, tuple(numbers), tuple(items)), rest


def usual_type(kind: HashType) -> SparkType:
    """The type that a column of this logical type has when nobody says otherwise."""
    if kind.name == "decimal":
        if kind.scale is None:
            raise Refusal("the column's own scale is not known", "Give the table's column types.")
        return SparkType("decimal", (MOST_DIGITS, kind.scale))
    if kind.items:
        name = "map" if kind.name == "map" else "array"
        return SparkType(name, items=tuple(usual_type(item) for item in kind.items))
    return SparkType(_PLAIN[kind.name])


def check_fits(kind: HashType, column: SparkType) -> None:
    """A Refusal when values of the column are none of the logical type."""
    fits = column.name in _FITTING[kind.name]
    if kind.name == "integer" and column.name == "decimal" and column.scale > 0:
        fits = False
    if not fits:
        raise Refusal(
            f"a column of type {column.name} holds no {kind.name}",
            f"Cast it to {' or '.join(_FITTING[kind.name][-2:])}, or correct the contract.",
        )
    if kind.nfc:
        raise Refusal(
            "Spark SQL has no Unicode normal forms",
            "Write the text in normal form C and take `string: raw`, or hash these rows in Python.",
        )
    for inner, item in zip(kind.items, column.items, strict=True):
        check_fits(inner, item)


def _unknown(text: str) -> Refusal:
    return Refusal(f"`{text}` is no column type that can be hashed", "See docs/hash_contract.md.")
