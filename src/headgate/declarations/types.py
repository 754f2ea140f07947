"""Types that declarations share: column types and their Spark names, durations, time patterns.

Texts are parsed here (`DECIMAL(10, 2)`, `5 MINUTES`, `yyyy-MM-dd`); a Refusal says what to write
instead. Time patterns are checked without Java, for what Spark's formatter accepts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta

from headgate.declarations.errors import Refusal, suggestion

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


_FORM = re.compile(r"([1-9][0-9]{0,8}) +(SECOND|MINUTE|HOUR|DAY)S?", re.IGNORECASE)
# Ten years: beyond it lies no window, and at some length no calendar and no BIGINT.
LONGEST = timedelta(days=3_650)
_UNITS = {"SECOND": 1, "MINUTE": 60, "HOUR": 3600, "DAY": 86_400}


def duration(value: object) -> timedelta:
    """The length of time that a text like `10 SECONDS` says."""
    if isinstance(value, timedelta):
        return value
    found = _FORM.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        example = "Write for example 10 SECONDS, 5 MINUTES or 1 HOUR."
        raise Refusal(f"`{value}` is no length of time", example)
    length = timedelta(seconds=int(found[1]) * _UNITS[found[2].upper()])
    if length > LONGEST:
        raise Refusal(f"`{value}` is more than {in_words(LONGEST)}", f"Write {in_words(LONGEST)}.")
    return length


def in_words(length: timedelta) -> str:
    """As `duration` reads it, in the largest unit that is exact."""
    seconds = int(length.total_seconds())
    unit, size = next((u, s) for u, s in reversed(_UNITS.items()) if seconds % s == 0)
    return f"{seconds // size} {unit}{'S' if seconds != size else ''}"


# What Spark 4's formatter parses; week-based letters (Y, w, W, u, e, c) it refuses at run time.
_LETTERS = frozenset("GyMLdDQqEaBhkKHmsSVzOXxZF")
_JAVA_RESERVED = frozenset("#{}")
_QUOTED = re.compile(r"'[^']*'")
_EXAMPLE = "Write for example yyyy-MM-dd'T'HH:mm:ss."


def java_pattern(text: str) -> str:
    """The pattern with doubled quotes halved; a Refusal when Java would not take it."""
    pattern = text.replace("''", "'")
    if pattern.count("'") % 2:
        raise Refusal(f"the pattern `{text}` opens a quote that it does not close", _EXAMPLE)
    bare = _QUOTED.sub("", pattern)
    _check_letters(bare, text)
    _check_brackets(bare, text)
    _check_date_parts(bare, text)
    return pattern


def _check_letters(bare: str, text: str) -> None:
    for letter in bare:
        if letter.isalpha() and letter not in _LETTERS:
            raise Refusal(
                f"the pattern `{text}` has the letter `{letter}`, which is no part of a time",
                f"Put letters that stand for themselves in quotes: '{letter}'.",
            )
        if letter in _JAVA_RESERVED:
            raise Refusal(
                f"the pattern `{text}` has `{letter}`, which Java reserves",
                f"Put it in quotes: '{letter}'.",
            )


def _check_brackets(bare: str, text: str) -> None:
    depth = 0
    for letter in bare:
        depth += {"[": 1, "]": -1}.get(letter, 0)
        if depth < 0:
            break
    if depth:
        raise Refusal(f"the square brackets of `{text}` do not match", _EXAMPLE)


def _check_date_parts(bare: str, text: str) -> None:
    lacking = [
        word
        for letters, word in (("yu", "year"), ("MLDQq", "month"), ("dD", "day"))
        if not set(letters) & set(bare)
    ]
    if lacking:
        raise Refusal(f"the pattern `{text}` has no {' and no '.join(lacking)}", _EXAMPLE)
