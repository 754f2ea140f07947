"""Writes java/connect-plugins/vectors/hash_vectors.jsonl: `python tools/hash_vectors.py`. One seed, one file."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

from headgate.hashing.typed_json import VECTORS_FILE, Vector, make_vector

SEED = 6
ROOT = Path(__file__).parents[1]
Draw = Callable[[random.Random], Any]

COMPOSED, DECOMPOSED = "\u00e9", "e\u0301"
STRINGS = (
    "", "null", "NULL", "None", "|", "||", "a|b", "a", "b", "a|", "|b", "ab", ":", ";", "n;", "s1:a",
    "s0:", "1:a", " ", " a", "a ", "  a  ", "\ta\t", "\n", "a\nb", "\u00a0a\u00a0", "\0", "a\0b", "\0\0",
    COMPOSED, DECOMPOSED, "\u00c5", "A\u030a", "\u212b", "\u1e9b\u0323", "\ufb01", "\uac00",
    "\u1100\u1161", "q\u0307\u0323", "q\u0323\u0307", "\u0958", "ß", "SS", "İ", "i\u0307", "ı", "Σ", "ς",
    "😀", "👨‍👩‍👧", "🇩🇪", "𝒳", "\U0010ffff", "\uffff", "\ufeff", "\ufffd", "\u2028", "\u202e", "日本", "ü|ö",
    "true", "false", "0", "-0", "1e7", "NaN", "\\", "\\|", "'", '"', "${x}", "x" * 300, "é" * 128,
)  # fmt: skip
INTEGERS = (
    0, 1, -1, 7, 10, 100, 127, 128, -128, 255, 32767, -32768, 2**31 - 1, -(2**31), 2**31, 10**7,
    2**53, 2**53 + 1, 2**63 - 1, -(2**63), 123456789012345678,
)  # fmt: skip
LONG_INTEGERS = (*INTEGERS, 2**63, -(2**63) - 1, 2**64, 10**37, 10**38 - 1, -(10**38) + 1)
DECIMALS = tuple(
    Decimal(text)
    for text in (
        "0 -0 0.0 0.00 -0.00 1 1.0 1.00 1.000 -1 12.5 12.50 12.500 0.1 0.10 0.005 0.004 0.0049999999 -0.005"
        " -0.004 0.015 0.025 0.045 2.5 3.5 -2.5 0.5 -0.5 1.005 1.995 9.995 99.995 0.0000001 0.00000005 1E+3"
        " 1000 1E-7 10000000 1E+7 123456789.123456789 0.3 0.30000000000000004 9999999999.9999999999"
        " -9999999999.9999999999 0.000001 0.0000004 0.0000005 -0.0000005 12345678901234567890.12"
    ).split()
)
FINE = tuple(
    Decimal(text)
    for text in (
        "0 0.5 0.7 -0.5 1E-33 -1E-33 5E-8 0.00000123 1.5E-20 -0.000001 0.999999999999999999999999999999999"
        " -0.100000000000000000000000000000001 12.5"
    ).split()
)
DOUBLES = (
    0.0, -0.0, 1.0, -1.0, 0.1, 0.2, 0.3, 0.1 + 0.2, 0.5, 1.5, 2.5, -0.5, -1.5, 0.005, 0.015, 0.025, 1.005,
    2.675, 1e7, 1e7 + 0.1, 9999999.999999, 1e-7, 5e-7, 1.5e-6, 1e15, 1e16, 2.0**53, 2.0**53 + 2, 9.2e18,
    2.0**63, -(2.0**63), 9223372036854774784.0, 9223372036854.775, 9223372036854.777, 1e19, -1e19, 1e22,
    1e23, 1e300, -1e300, 1.7976931348623157e308, 5e-324, -5e-324, 2.2250738585072014e-308, 0.49999999999999994,
    float("nan"), float("inf"), float("-inf"), 3.141592653589793, 1 / 3, 123456.789, 4.35, 0.285,
)  # fmt: skip
PARIS, DELHI, WEST = (timezone(timedelta(minutes=m)) for m in (120, 330, -720))
TIMES = (
    datetime(1970, 1, 1, tzinfo=UTC), datetime(1970, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 999999, UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999500, UTC), datetime(1969, 12, 31, 23, 59, 59, 1000, UTC),
    datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC), datetime(1960, 2, 29, 12, 0, 0, 1, UTC),
    datetime(2024, 2, 29, 23, 59, 59, 999999, UTC), datetime(2024, 3, 1, 1, 29, 59, 999999, DELHI),
    datetime(2024, 1, 31, 12, 30, 0, 123000, UTC), datetime(2024, 1, 31, 14, 30, 0, 123000, PARIS),
    datetime(2024, 1, 31, 12, 30, 0, 123456, UTC), datetime(2024, 1, 31, 12, 30, 0, 123999, UTC),
    datetime(2024, 3, 10, 2, 30, tzinfo=UTC), datetime(2024, 3, 31, 2, 30, tzinfo=UTC), datetime(2024, 3, 31, 2, 30),
    datetime(2024, 10, 27, 2, 30, tzinfo=UTC), datetime(2024, 11, 3, 1, 30), datetime(2024, 11, 3, 6, 30, tzinfo=UTC),
    datetime(1, 1, 1, 12, tzinfo=UTC), datetime(9999, 12, 31, 11, 59, 59, 999999, UTC), datetime(1582, 10, 10, tzinfo=UTC),
    datetime(1900, 1, 1, tzinfo=UTC), datetime(1883, 11, 18, 17, 0, 0, tzinfo=UTC), datetime(2024, 6, 30, 23, 59, 59, tzinfo=WEST),
)  # fmt: skip
DATES = tuple(
    date.fromisoformat(text)
    for text in (
        "1970-01-01 1969-12-31 1970-01-02 2024-02-29 2000-02-29 1900-03-01 1960-02-29 0001-01-01 9999-12-31"
        " 1582-10-04 1582-10-15 2024-12-31 2024-03-10 2024-10-27"
    ).split()
)
UUIDS = (
    "550e8400-e29b-41d4-a716-446655440000", "550E8400-E29B-41D4-A716-446655440000",
    "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff", "FFFFFFFF-ffff-1111-8888-aBcDeF012345",
)  # fmt: skip
BYTES = (b"", b"\0", b"\0\0", b"\xff", b"\xc3\xa9", b"abc", b";", bytes(range(64)))


def one_of(known: tuple[Any, ...], nulls: float = 0.08) -> Draw:
    """One of the traps, or null."""
    return lambda draws: None if draws.random() < nulls else draws.choice(known)


def either(*draws_of: Draw) -> Draw:
    return lambda draws: draws.choice(draws_of)(draws)


def text(draws: random.Random) -> str:
    """Short texts of few signs, so that boundaries could move."""
    return "".join(draws.choice("a|b:;1n se\u0301é😀\0") for _ in range(draws.randrange(6)))


def integer(bits: int) -> Draw:
    return lambda draws: draws.randrange(-(2**bits), 2**bits) >> draws.randrange(bits)


def decimal(digits: int, scale: int) -> Draw:
    """Any number that a DECIMAL(digits, scale) holds."""
    return lambda draws: Decimal(
        (draws.randrange(2), _digits(draws, digits), -draws.randrange(scale + 1))
    )


def _digits(draws: random.Random, most: int) -> tuple[int, ...]:
    return tuple(
        draws.choice((0, 0, 5, draws.randrange(10))) for _ in range(draws.randrange(1, most + 1))
    )


def double(draws: random.Random) -> float:
    """Any bits, or a price."""
    if draws.random() < 0.3:
        return struct.unpack(">d", draws.randbytes(8))[0]
    return round(draws.uniform(-1000, 1000), draws.randrange(9))


def as_float(draw: Draw) -> Draw:
    def drawn(draws: random.Random) -> float | None:
        value = draw(draws)
        try:
            return None if value is None else struct.unpack(">f", struct.pack(">f", value))[0]
        except OverflowError:
            return 1.5

    return drawn


def time(draws: random.Random) -> datetime:
    zone = draws.choice((UTC, None, PARIS, DELHI, WEST))
    return datetime(1970, 1, 1, tzinfo=zone) + timedelta(
        microseconds=draws.randrange(-(10**16), 10**16)
    )


def day(draws: random.Random) -> date:
    return date(1970, 1, 1) + timedelta(days=draws.randrange(-200_000, 200_000))


def bytes_of(draws: random.Random) -> bytes:
    return draws.randbytes(draws.randrange(6))


def many(item: Draw, most: int = 5) -> Draw:
    return lambda draws: [item(draws) for _ in range(draws.randrange(most))]


def pairs(key: Draw, item: Draw) -> Draw:
    """A map in any order: the same entries come back in another."""

    def drawn(draws: random.Random) -> dict[Any, Any]:
        found = {key(draws): item(draws) for _ in range(draws.randrange(5))}
        keys = draws.sample(list(found), len(found))
        return {one: found[one] for one in keys}

    return drawn


STRING = either(one_of(STRINGS), one_of(STRINGS), text)
BOOLEAN = one_of((True, False), 0.2)
INTEGER = either(one_of(INTEGERS), integer(63))
DECIMAL = either(one_of(DECIMALS), decimal(20, 8))
DOUBLE = either(one_of(DOUBLES), double)
TIME, DATE = either(one_of(TIMES), time), either(one_of(DATES), day)
UUID_TEXT, BINARY = one_of(UUIDS), either(one_of(BYTES), bytes_of)


@dataclass(frozen=True)
class Group:
    """Rows under one contract; `spark` are column types that hold them, none when no table can."""

    trap: str
    types: Mapping[str, str]
    draws: tuple[Draw, ...]
    rows: int
    spark: tuple[str, ...] | None
    given: tuple[tuple[Any, ...], ...] = field(default=())

    def each(self, draws: random.Random) -> Iterator[tuple[Any, ...]]:
        yield from self.given
        for _ in range(self.rows):
            yield tuple(draw(draws) for draw in self.draws)


BUSINESS = {"col1": "string", "col2": "decimal(2)", "col3": "timestamp(ms)", "col4": "double(6)"}
NOON = datetime(2024, 1, 31, 12, 30, 0, 123000, UTC)
THREE = {"a": "string", "b": "string", "c": "string"}
MOVED = (
    ("a|b", "c", ""), ("a", "b|c", ""), ("a", "b", "c"), ("ab", "", "c"), ("a", "b", "|c"), ("", "", ""),
    (None, None, None), ("", None, ""), (None, "", ""), ("null", "", ""), ("s1:a", "", ""), ("", "s1:a", ""),
    ("1:a", "n;", ""), ("n;", None, "n;"), (None, "n;", "n;"), ("a\0", "b", ""), ("a", "\0b", ""),
    (COMPOSED, "", ""), (DECOMPOSED, "", ""), (" a", "a ", "a"), ("😀", "\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"), ""),
)  # fmt: skip
DEEP = "map<string,list<map<integer,set<decimal(2)>>>>"
DEEP_SPARK = "map<string,array<map<bigint,array<decimal(38,10)>>>>"
deep_map = pairs(
    one_of(STRINGS[1:], 0),
    many(one_of(({}, {1: [Decimal("1.0"), Decimal("1")], -1: []}, {2: None}, {7: [None]}), 0.1), 4),
)
ALL = {
    "s": ("string", "string", STRING), "t": ("string(trim)", "string", STRING), "b": ("boolean", "boolean", BOOLEAN),
    "i": ("integer", "bigint", INTEGER), "j": ("integer", "int", either(one_of(INTEGERS[:10]), integer(31))),
    "d": ("decimal(2)", "decimal(38,10)", DECIMAL), "e": ("decimal", "decimal(38,10)", DECIMAL),
    "f": ("double(6)", "double", DOUBLE), "g": ("double", "double", DOUBLE), "c": ("date", "date", DATE),
    "ts": ("timestamp(s)", "timestamp", TIME), "tm": ("timestamp(ms)", "timestamp", TIME),
    "tu": ("timestamp(us)", "timestamp_ntz", TIME), "u": ("uuid", "string", UUID_TEXT), "x": ("binary", "binary", BINARY),
    "l": ("list<string>", "array<string>", either(many(STRING), one_of(((),), 0.5))),
    "z": ("set<integer>", "array<bigint>", many(INTEGER)),
    "m": ("map<string,double(2)>", "map<string,double>", pairs(one_of(STRINGS, 0), DOUBLE)),
}  # fmt: skip

BLANKS = ("a", " a", "a ", " a ", "", " ", "b")


def group(
    trap: str,
    rows: int,
    *fields: tuple[str, str | None, Draw],
    given: tuple[tuple[Any, ...], ...] = (),
) -> Group:
    """Fields a, b, c … of these types."""
    names = "abcdefghij"[: len(fields)]
    spark = (
        tuple(str(kind) for _, kind, _ in fields) if all(kind for _, kind, _ in fields) else None
    )
    return Group(
        trap,
        dict(zip(names, (f[0] for f in fields), strict=True)),
        tuple(f[2] for f in fields),
        rows,
        spark,
        given,
    )


GROUPS = (
    Group(
        "the shipped contract",
        BUSINESS,
        (STRING, DECIMAL, TIME, DOUBLE),
        200,
        ("string", "decimal(38,10)", "timestamp", "double"),
        (
            ("x", Decimal("12.5"), NOON, 0.3),
            ("x", Decimal("12.50"), NOON.astimezone(PARIS), 0.1 + 0.2),
            ("", None, TIMES[2], -0.0),
            (None, Decimal("-0.005"), TIMES[1], float("nan")),
            ("é", Decimal(10) ** 20, None, 1e300),
            ("null", Decimal(0), None, float("-inf")),
        ),
    ),
    Group(
        "bars and moved boundaries", THREE, (STRING, STRING, STRING), 250, ("string",) * 3, MOVED
    ),
    Group(
        "blanks that do not count",
        dict.fromkeys("abc", "string(trim)"),
        (STRING,) * 3,
        100,
        ("string",) * 3,
        MOVED,
    ),
    Group(
        "unicode normal form",
        {"a": "string(nfc)", "b": "string(nfc,trim)"},
        (STRING, STRING),
        120,
        None,
        tuple(m[:2] for m in MOVED),
    ),
    group(
        "null counts as empty",
        60,
        ("string(nulls_empty)", "string", STRING),
        ("binary(nulls_empty)", "binary", BINARY),
        ("list<string>(nulls_empty)", "array<string>", one_of(((), ("",), (None,)), 0.3)),
        ("set<integer>(nulls_empty)", "array<bigint>", one_of(((), (1,)), 0.3)),
        ("map<string,string>(nulls_empty)", "map<string,string>", one_of(({}, {"": None}), 0.3)),
    ),
    Group(
        "names in any case and script",
        {
            "b": "string",
            "a": "string",
            "Z": "string",
            "é": "string",
            "col10": "integer",
            "col2": "integer",
            "a b": "string",
        },
        (STRING, STRING, STRING, STRING, INTEGER, INTEGER, STRING),
        40,
        ("string", "string", "string", "string", "bigint", "bigint", "string"),
    ),
    group(
        "booleans and whole numbers",
        80,
        ("boolean", "boolean", BOOLEAN),
        ("integer", "bigint", INTEGER),
        ("integer", "smallint", either(one_of(INTEGERS[:10]), integer(15))),
    ),
    group(
        "long whole numbers",
        60,
        ("integer", "decimal(38,0)", either(one_of(LONG_INTEGERS), integer(120))),
        ("decimal(0)", "bigint", INTEGER),
        ("decimal(3)", "bigint", INTEGER),
    ),
    group(
        "whole numbers that no table holds",
        20,
        ("integer", None, integer(400)),
        (
            "decimal(2)",
            None,
            either(
                one_of((Decimal("1E+2147"), Decimal("-1E-2147"), Decimal("1E+37"))), decimal(60, 70)
            ),
        ),
    ),
    group(
        "decimals of different scale",
        160,
        ("decimal(0)", "decimal(38,10)", DECIMAL),
        ("decimal(2)", "decimal(38,10)", DECIMAL),
        ("decimal(6)", "decimal(38,10)", DECIMAL),
        ("decimal(10)", "decimal(38,10)", DECIMAL),
    ),
    group(
        "decimals with many digits behind the point",
        60,
        ("decimal(18)", "decimal(38,18)", either(one_of(DECIMALS), decimal(19, 18))),
        ("decimal(30)", "decimal(38,30)", decimal(8, 30)),
        ("decimal(8)", "decimal(38,30)", decimal(8, 30)),
    ),
    group(
        "decimals of tables",
        120,
        ("decimal(2)", "decimal(9,2)", decimal(7, 2)),
        ("decimal(4)", "decimal(15,4)", decimal(11, 4)),
        ("decimal(6)", "decimal(18,6)", decimal(12, 6)),
        ("decimal(2)", "decimal(12,5)", decimal(7, 5)),
        ("decimal(4)", "decimal(10,2)", decimal(8, 2)),
    ),
    group(
        "decimals that are too long at their scale",
        60,
        (
            "decimal(2)",
            "decimal(38,0)",
            either(one_of(LONG_INTEGERS[-9:]), integer(120), integer(126)),
        ),
        ("decimal(30)", "decimal(38,5)", decimal(33, 5)),
    ),
    group(
        "exact decimals",
        100,
        ("decimal", "decimal(38,10)", DECIMAL),
        ("decimal", "decimal(38,0)", either(one_of(LONG_INTEGERS), integer(120))),
        ("decimal", "decimal(10,4)", decimal(6, 4)),
    ),
    group(
        "doubles at a scale",
        220,
        ("double(0)", "double", DOUBLE),
        ("double(2)", "double", DOUBLE),
        ("double(6)", "double", DOUBLE),
        ("double(15)", "double", DOUBLE),
    ),
    group("exact doubles", 150, ("double", "double", DOUBLE)),
    group(
        "floats and other numbers as doubles",
        80,
        ("double(3)", "float", as_float(DOUBLE)),
        ("double", "float", as_float(DOUBLE)),
        ("double(2)", "bigint", integer(52)),
        ("double(2)", "decimal(20,4)", decimal(11, 4)),
    ),
    group(
        "zones, offsets, leap days, before 1970",
        200,
        ("timestamp(s)", "timestamp", TIME),
        ("timestamp(ms)", "timestamp", TIME),
        ("timestamp(us)", "timestamp", TIME),
        ("date", "date", DATE),
    ),
    group(
        "times without a zone",
        120,
        ("timestamp(s)", "timestamp_ntz", TIME),
        ("timestamp(ms)", "timestamp_ntz", TIME),
        ("timestamp(us)", "timestamp_ntz", TIME),
    ),
    group("uuids and bytes", 60, ("uuid", "string", UUID_TEXT), ("binary", "binary", BINARY)),
    group(
        "lists",
        80,
        ("list<string>", "array<string>", many(STRING)),
        (
            "list<list<boolean>>",
            "array<array<boolean>>",
            many(either(many(BOOLEAN), one_of(((),), 0.5))),
        ),
        ("list<timestamp(ms)>", "array<timestamp>", many(TIME)),
    ),
    group(
        "sets in any order",
        90,
        ("set<string>", "array<string>", many(STRING)),
        ("set<decimal(2)>", "array<decimal(38,10)>", many(DECIMAL)),
        ("set<double(1)>", "array<double>", many(DOUBLE)),
        ("set<string(trim)>", "array<string>", many(STRING)),
    ),
    group(
        "maps in any order",
        90,
        ("map<string,integer>", "map<string,bigint>", pairs(one_of(STRINGS, 0), INTEGER)),
        ("map<integer,string>", "map<bigint,string>", pairs(one_of(INTEGERS, 0), STRING)),
        ("map<uuid,date>", "map<string,date>", pairs(one_of(UUIDS[:3:2], 0), DATE)),
    ),
    group("nested", 40, (DEEP, DEEP_SPARK, deep_map)),
    Group(
        "every type in one row",
        {name: kind[0] for name, kind in ALL.items()},
        tuple(kind[2] for kind in ALL.values()),
        120,
        tuple(kind[1] for kind in ALL.values()),
    ),
    group(
        "exact decimals below one, with more digits than a product holds",
        24,
        ("decimal", "decimal(38,33)", one_of(FINE)),
        ("decimal", "decimal(38,35)", one_of(FINE)),
        ("decimal", "decimal(38,38)", one_of((*FINE[:-1], Decimal(f"-0.{'9' * 38}")))),
        ("decimal(30)", "decimal(38,38)", one_of(FINE[:-1])),
        given=((Decimal("0.5"),) * 4, (Decimal("0.7"),) * 4, (Decimal(0),) * 4),
    ),
    group(
        "map keys that become equal, and nulls inside collections",
        20,
        ("map<string(trim),integer>", "map<string,bigint>", pairs(one_of(BLANKS, 0), INTEGER)),
        ("list<string(nulls_empty)>", "array<string>", many(one_of((None, "", "x"), 0.3))),
        given=(
            ({" a": 1, "a": 2}, [None, "x"]),
            ({"a": 2, " a": 1, "a ": 1}, ["", "x"]),
            ({"a": 1}, [None]),
            ({}, None),
        ),
    ),
)


def vectors(seed: int = SEED) -> Iterator[Vector]:
    """All of them, numbered."""
    number = 0
    for at, found in enumerate(GROUPS):
        draws = random.Random(f"{seed}/{at}")
        spark = dict(zip(found.types, found.spark, strict=True)) if found.spark else None
        for values in found.each(draws):
            number += 1
            row = dict(zip(found.types, values, strict=True))
            yield make_vector(number, found.trap, found.types, row, spark)


def file_bytes() -> bytes:
    return b"".join(vector.line for vector in vectors())


if __name__ == "__main__":
    (ROOT / VECTORS_FILE).parent.mkdir(parents=True, exist_ok=True)
    (ROOT / VECTORS_FILE).write_bytes(file_bytes())
