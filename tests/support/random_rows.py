"""Rows of the columns in `random_exprs`, with every value that ever made two systems differ."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from math import inf, nan
from random import Random

from tests.support.random_expressions import COLUMNS, HOSTILE_TEXTS

from headgate.conditions.evaluator.values import Value, micros_since, time_text
from headgate.conditions.literals import spark_literal
from headgate.declarations.types import SqlType

Row = dict[str, Value]
BATCH_TIME = datetime(2024, 5, 6, 7, 8, 9, 123_456, tzinfo=UTC)
LONG = "x" * 65_536
INT_EDGE, LONG_EDGE = 1 << 31, 1 << 63
# Dates and times beyond Python's are days and microseconds since 1970.
EXTREMES: dict[str, tuple[Value, ...]] = {
    "INT": (0, 1, -1, 7, INT_EDGE - 1, -INT_EDGE),
    "BIGINT": (0, 7, -1, LONG_EDGE - 1, -LONG_EDGE, (1 << 53) + 1),
    "DOUBLE": (0.0, -0.0, 0.1, -2.5, 1e22, 1e308, -1e308, 5e-324, nan, inf, -inf, 2.0**63),
    "FLOAT": (0.0, -0.0, 0.10000000149011612, nan, -inf, 3.4e38, -2147483648.0),
    "DECIMAL": (Decimal(0), Decimal(1), Decimal(-1)),
    "STRING": (*HOSTILE_TEXTS, LONG),
    "DATE": (
        date(2024, 2, 29),
        date(1, 1, 1),
        date(9999, 12, 31),
        date(1900, 3, 1),
        date(1969, 12, 31),
        INT_EDGE - 1,
        -INT_EDGE,
        -719_529,
    ),
    "TIMESTAMP": (
        datetime(2024, 1, 1, 0, 0, 0, 1),
        datetime(1, 1, 1),
        datetime(1969, 12, 31, 23, 59, 59, 999_999),
        LONG_EDGE - 1,
        -LONG_EDGE,
    ),
    "TIMESTAMP_LTZ": (
        datetime(1970, 1, 1, tzinfo=UTC),
        datetime(2024, 5, 6, 7, 8, 9, 123_456, tzinfo=UTC),
        datetime(1969, 12, 31, 23, 59, 59, 1, tzinfo=UTC),
        LONG_EDGE - 1,
        -LONG_EDGE,
    ),
    "BOOLEAN": (True, False),
}
_PIECES = (
    *HOSTILE_TEXTS,
    "a",
    "b",
    "%",
    "_",
    "A",
    " ",
    "0",
    "9",
    "Σ",
    "é",
    "e\u0301",
    "ß",
    "İ",
    "-",
)


def extremes(kind: SqlType) -> tuple[Value, ...]:
    """Every extreme value of the type, and NULL."""
    nines = "9" * ((kind.precision or 0) - (kind.scale or 0)) + "." + "9" * (kind.scale or 0)
    wide = (Decimal(nines), Decimal(nines).copy_negate()) if kind.name == "DECIMAL" else ()
    return (*EXTREMES[kind.name], *wide, None)


def random_rows(rng: Random, count: int) -> list[Row]:
    return [{name: random_value(rng, kind) for name, kind in COLUMNS.items()} for _ in range(count)]


def random_value(rng: Random, kind: SqlType) -> Value:
    if rng.random() < 0.6:
        return rng.choice(extremes(kind))
    match kind.name:
        case "INT":
            return rng.choice((rng.randint(-9, 9), rng.randrange(-INT_EDGE, INT_EDGE)))
        case "BIGINT":
            return rng.choice((rng.randint(-9, 9), rng.randrange(-LONG_EDGE, LONG_EDGE)))
        case "DOUBLE":
            return rng.choice(
                (rng.randint(-9, 9) / 4, rng.uniform(-1, 1) * 10 ** rng.randint(-9, 20))
            )
        case "FLOAT":
            return rng.randint(-999, 999) / 8
        case "DECIMAL":
            digits = rng.randrange(10 ** rng.randint(1, kind.precision or 1))
            return Decimal(f"{rng.choice(('', '-'))}{digits}E-{kind.scale}")
        case "STRING":
            return rng.choice((_any_text, _number_text, _time_text))(rng)
        case "DATE":
            return rng.choice(
                (rng.randint(-800_000, 3_000_000), rng.randrange(-INT_EDGE, INT_EDGE))
            )
        case "BOOLEAN":
            return rng.random() < 0.5
        case _:
            near = timedelta(microseconds=rng.randrange(-(10**13), 10**13))
            plain = rng.choice((BATCH_TIME + near, rng.randrange(-LONG_EDGE, LONG_EDGE)))
            if kind.name == "TIMESTAMP_LTZ" or isinstance(plain, int):
                return plain
            return plain.replace(tzinfo=None)


def _any_text(rng: Random) -> str:
    return "".join(rng.choices(_PIECES, k=rng.randint(0, 3)))


def _number_text(rng: Random) -> str:
    """A number, or nearly one."""
    digits = str(rng.randrange(10 ** rng.choice((1, 2, 10, 11, 19, 20, 40))))
    parts = (
        ("", "", "", " ", "\t", "\x7f", "\u00a0"),
        ("", "", "-", "+", "--"),
        (digits, digits, "", "0x1f", "inf", "NaN", "\u0967"),
        ("", "", ".", f".{digits}", ".5"),
        ("", "", "", f"e{rng.randint(-400, 400)}", "E+5", "e", "p-3", "e99999999999"),
        ("", "", "", "d", "F", "L", " ", "\x00", "_"),
    )
    return "".join(rng.choice(part) for part in parts)


def _time_text(rng: Random) -> str:
    """A date or a time, or nearly one."""
    parts = (
        ("", "", "", " ", "+", "-"),
        ("2024", "1969", "0000", "10000", "1234567", "9999999", "24"),
        ("", "-02", "-02", "-2", "-13", "-00"),
        ("", "-29", "-29", "-9", "-30", "-31"),
        ("", " ", "T", "x"),
        ("", "12:30", "12:30:59", "23:59:59", "1:2:3", "24:00:00"),
        ("", "", ".5", ".123456", ".1234567", ".", ".1234567890"),
        ("", "", "Z", "+02:00", "-18:00", "+18:01", " UTC", " Europe/Berlin", "z"),
        ("", "", "", " ", "\n"),
    )
    return "".join(rng.choice(part) for part in parts)


def spark_value(value: Value, kind: SqlType) -> str:
    """The value as Spark SQL, of exactly that type."""
    plain = "TIMESTAMP_LTZ" if kind.name == "TIMESTAMP_LTZ" else kind.spark
    return f"CAST({_written(value, kind)} AS {plain})"


def _written(value: Value, kind: SqlType) -> str:
    if isinstance(value, datetime):
        value = micros_since(value)
    if isinstance(value, int) and kind.name == "DATE":
        return f"date_from_unix_date({value})"
    if isinstance(value, int) and kind.name == "TIMESTAMP":
        return f"TIMESTAMP_NTZ '{time_text(value)}'"
    if isinstance(value, int) and kind.name == "TIMESTAMP_LTZ":
        return f"timestamp_micros({value})"
    return spark_literal(value) + ("L" if kind.name == "BIGINT" and value is not None else "")
