"""Column types as the manifests write them, and what Spark calls them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from headgate.declarations.refusal import Refusal, suggestion

MAX_DECIMAL_PRECISION = 38
MAX_TIME_PRECISION = 6

_PLAIN = frozenset({"STRING", "BOOLEAN", "INT", "BIGINT", "FLOAT", "DOUBLE", "DATE", "JSON"})
_TIMES = {"TIMESTAMP": "TIMESTAMP_NTZ", "TIMESTAMP_LTZ": "TIMESTAMP"}
_SPARK = {**_TIMES, "JSON": "VARIANT"}
_SYNONYMS = {
    "INTEGER": "INT",
    "LONG": "BIGINT",
    "NUMERIC": "DECIMAL",
    "DEC": "DECIMAL",
    "REAL": "FLOAT",
    "BOOL": "BOOLEAN",
    "TIMESTAMP_NTZ": "TIMESTAMP",
}
_NEAREST = {
    "VARCHAR": "STRING",
    "CHAR": "STRING",
    "TEXT": "STRING",
    "TINYINT": "INT",
    "SMALLINT": "INT",
    "DATETIME": "TIMESTAMP",
    "TIME": "STRING",
    "OBJECT": "JSON",
    "STRUCT": "JSON",
    "MAP": "JSON",
    "ARRAY": "JSON",
    "LIST": "JSON",
}
TYPE_NAMES = tuple(sorted(_PLAIN | set(_TIMES) | {"DECIMAL"}))
_TEXT = re.compile(r"\s*([A-Za-z_]+)\s*(?:\(\s*(\d{1,3})\s*(?:,\s*(\d{1,3})\s*)?\))?\s*")


@dataclass(frozen=True)
class SqlType:
    """One column type; `precision` and `scale` only where the type has them."""

    name: str
    precision: int | None = None
    scale: int | None = None

    def __str__(self) -> str:
        if self.scale is not None:
            return f"{self.name}({self.precision}, {self.scale})"
        return self.name if self.precision is None else f"{self.name}({self.precision})"

    @property
    def spark(self) -> str:
        """The type's name in Spark SQL."""
        return _SPARK.get(self.name) or str(self)

    @property
    def is_integral(self) -> bool:
        return self.name in {"INT", "BIGINT"}

    @property
    def is_numeric(self) -> bool:
        return self.name in {"INT", "BIGINT", "DECIMAL", "FLOAT", "DOUBLE"}

    @property
    def is_time(self) -> bool:
        return self.name in _TIMES


STRING = SqlType("STRING")
BOOLEAN = SqlType("BOOLEAN")
INT = SqlType("INT")
BIGINT = SqlType("BIGINT")
FLOAT = SqlType("FLOAT")
DOUBLE = SqlType("DOUBLE")
DATE = SqlType("DATE")
JSON = SqlType("JSON")
TIMESTAMP = SqlType("TIMESTAMP", MAX_TIME_PRECISION)
TIMESTAMP_LTZ = SqlType("TIMESTAMP_LTZ", MAX_TIME_PRECISION)


def decimal(precision: int, scale: int) -> SqlType:
    return SqlType("DECIMAL", precision, scale)


def parse_type(text: str) -> SqlType:
    """The type that `text` names; a Refusal says what to write instead."""
    match = _TEXT.fullmatch(text)
    if match is None:
        raise Refusal(f"`{text}` is not a type", "Write for example STRING or DECIMAL(10, 2).")
    word, first, second = match.group(1).upper(), match.group(2), match.group(3)
    arguments = tuple(int(part) for part in (first, second) if part is not None)
    return _typed(_SYNONYMS.get(word, word), arguments, text.strip())


def _typed(name: str, arguments: tuple[int, ...], text: str) -> SqlType:
    if name == "DECIMAL":
        return _decimal(arguments, text)
    if name in _TIMES:
        return _time(name, arguments, text)
    if name not in _PLAIN:
        near = _NEAREST.get(name)
        raise Refusal(
            f"`{text}` is not a type known here",
            f"Write {near}." if near else suggestion(name, TYPE_NAMES, "types"),
        )
    if arguments:
        raise Refusal(f"{name} takes no numbers in brackets", f"Write {name}.")
    return SqlType(name)


def _decimal(arguments: tuple[int, ...], text: str) -> SqlType:
    if len(arguments) != 2:
        raise Refusal(f"`{text}` does not say its digits", "Write for example DECIMAL(10, 2).")
    precision, scale = arguments
    if not 1 <= precision <= MAX_DECIMAL_PRECISION or scale > precision:
        raise Refusal(
            f"`{text}` cannot be stored",
            f"Use 1 to {MAX_DECIMAL_PRECISION} digits, of which no more than all are decimals.",
        )
    return decimal(precision, scale)


def _time(name: str, arguments: tuple[int, ...], text: str) -> SqlType:
    if len(arguments) > 1 or (arguments and arguments[0] > MAX_TIME_PRECISION):
        raise Refusal(
            f"`{text}` is finer than a microsecond",
            f"Write {name}(3) or {name}({MAX_TIME_PRECISION}).",
        )
    return SqlType(name, arguments[0] if arguments else MAX_TIME_PRECISION)


def can_cast(source: SqlType, target: SqlType) -> bool:
    """Whether Spark has a (trying) cast between the two types at all."""
    if "JSON" in (source.name, target.name):
        return (source.name, target.name) == ("JSON", "STRING")
    if source.name == target.name or "STRING" in (source.name, target.name):
        return True
    if source.is_numeric or source.name == "BOOLEAN":
        return target.is_numeric or target.name == "BOOLEAN"
    return target.is_time or target.name == "DATE"
