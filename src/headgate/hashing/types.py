"""Logical types of hashed fields, `map<string,list<decimal(2)>>`, and the Spark column types that fit them.

Both are parsed from one line of text, and `str()` gives the canonical form. `check_fits` refuses a
column whose values are not of the logical type.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from headgate.declarations.errors import Refusal, suggestion

SCALARS = (
    "string", "boolean", "integer", "decimal", "double", "date", "timestamp", "uuid", "binary",
)  # fmt: skip
COLLECTIONS = {"list": 1, "set": 1, "map": 2}
TYPE_NAMES = (*SCALARS, *COLLECTIONS)
UNITS = ("s", "ms", "us")
MOST_DIGITS = 38
MOST_SCALE = {"decimal": 30, "double": 15}
CAN_BE_EMPTY = ("string", "binary", "list", "set", "map")
DEEPEST = 8
_NULLS_EMPTY = "nulls_empty"
_WORD = re.compile(r"[A-Za-z_]+")
_SIGN = re.compile(r"\s*([A-Za-z_]+|\d+|[<>(),])\s*")


@dataclass(frozen=True)
class HashType:
    """A type with all that decides how its values are written; `str()` is its canonical form."""

    name: str
    scale: int | None = None
    unit: str | None = None
    nfc: bool = False
    trim: bool = False
    nulls_empty: bool = False
    items: tuple[HashType, ...] = ()

    def __str__(self) -> str:
        inner = f"<{','.join(str(item) for item in self.items)}>" if self.items else ""
        words = (self.unit, str(self.scale) if self.scale is not None else None)
        flags = ("nfc" * self.nfc, "trim" * self.trim, _NULLS_EMPTY * self.nulls_empty)
        given = ",".join(word for word in (*words, *flags) if word)
        return f"{self.name}{inner}({given})" if given else f"{self.name}{inner}"


def parse_hash_type(text: str) -> HashType:
    """The type that `text` names; a Refusal says what to write instead."""
    return checked(read_hash_type(text))


def read_hash_type(text: str) -> HashType:
    """The same, before it is known whether all that it needs was said elsewhere."""
    found, rest = _type(_signs(text), text, 0)
    if rest:
        raise _unreadable(text)
    return found


def checked(kind: HashType) -> HashType:
    """The type itself; a Refusal when something of it does not belong together."""
    most = MOST_SCALE.get(kind.name)
    if kind.scale is not None and most is None:
        raise Refusal(f"{kind.name} has no scale", "Leave it out.")
    if kind.scale is not None and most is not None and not 0 <= kind.scale <= most:
        raise Refusal(f"the scale of a {kind.name} is 0 to {most}", f"Write at most {most}.")
    if kind.name == "timestamp" and kind.unit is None:
        raise Refusal("a timestamp needs its unit", f"Add `unit`: one of {', '.join(UNITS)}.")
    if kind.name != "timestamp" and kind.unit is not None:
        raise Refusal(f"{kind.name} has no unit", "Leave it out.")
    if kind.name != "string" and (kind.nfc or kind.trim):
        raise Refusal(f"{kind.name} is no text", "Leave `string` and `trim` out.")
    if kind.nulls_empty and kind.name not in CAN_BE_EMPTY:
        raise Refusal(f"no {kind.name} is empty", "Leave `nulls` out: null has its own tag.")
    return kind


def _signs(text: str) -> list[str]:
    found, at = list[str](), 0
    while at < len(text):
        match = _SIGN.match(text, at)
        if match is None:
            raise _unreadable(text)
        found.append(match.group(1))
        at = match.end()
    return found


def _type(signs: list[str], text: str, depth: int) -> tuple[HashType, list[str]]:
    if not signs or not _WORD.fullmatch(signs[0]) or depth > DEEPEST:
        raise _unreadable(text)
    name, rest = signs[0], signs[1:]
    if name not in TYPE_NAMES:
        raise Refusal(f"`{name}` is not a type known here", suggestion(name, TYPE_NAMES, "types"))
    items, rest = _items(name, rest, text, depth)
    given, rest = _arguments(rest, text)
    kind = HashType(name, items=items)
    for word in given:
        kind = _with(kind, word)
    return kind if depth == 0 else checked(kind), rest


def _items(
    name: str, signs: list[str], text: str, depth: int
) -> tuple[tuple[HashType, ...], list[str]]:
    count = COLLECTIONS.get(name, 0)
    if count == 0:
        return (), signs
    found, rest = list[HashType](), signs
    for opening in ("<", ",")[:count]:
        if rest[:1] != [opening]:
            example = "map<string,integer>" if count == 2 else f"{name}<string>"
            raise Refusal(f"`{text}` does not say what is in it", f"Write for example {example}.")
        item, rest = _type(rest[1:], text, depth + 1)
        found.append(item)
    if rest[:1] != [">"]:
        raise _unreadable(text)
    return tuple(found), rest[1:]


def _arguments(signs: list[str], text: str) -> tuple[list[str], list[str]]:
    if signs[:1] != ["("]:
        return [], signs
    if ")" not in signs:
        raise _unreadable(text)
    end = signs.index(")")
    words, commas = signs[1:end:2], signs[2:end:2]
    if not words or any(comma != "," for comma in commas) or len(words) != len(commas) + 1:
        raise _unreadable(text)
    return words, signs[end + 1 :]


def _with(kind: HashType, word: str) -> HashType:
    if word.isdigit():
        return replace(kind, scale=int(word))
    if word in UNITS:
        return replace(kind, unit=word)
    if word in ("nfc", "trim", _NULLS_EMPTY):
        return replace(kind, **{word: True})
    known = ("nfc", "trim", _NULLS_EMPTY, *UNITS)
    raise Refusal(f"`{word}` says nothing about a {kind.name}", suggestion(word, known, "words"))


def _unreadable(text: str) -> Refusal:
    return Refusal(f"`{text}` is not a type", "Write for example decimal(2) or list<string>.")


_SPARK_SIGN = re.compile(r"\s*([a-z_]+|\d+|[<>(),])\s*")
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
    signs = [match.group(1) for match in _SPARK_SIGN.finditer(text.lower())]
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
