"""Random conditions over few values, so that they often repeat, contain or exclude each other."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from random import Random

from headgate.conditions.evaluator.values import Value
from headgate.declarations.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    SqlType,
    decimal,
)

COLUMNS: dict[str, SqlType] = {
    "x": INT,
    "y": BIGINT,
    "z": INT,
    "d": DOUBLE,
    "m": decimal(7, 2),
    "s": STRING,
    "t": STRING,
    "b": BOOLEAN,
    "day": DATE,
    "ts": TIMESTAMP,
}
_EDGES: dict[str, tuple[Value, ...]] = {
    "INT": (0, 1, 2, 3, 4, -1, 2**31 - 1, -(2**31)),
    "BIGINT": (0, 1, 2, 3, 2**53 + 1, 2**63 - 1, -(2**63)),
    "DOUBLE": (0.0, -0.0, 1.0, 1.5, 2.0, float("nan"), float("inf"), float("-inf")),
    "DECIMAL": (Decimal("0.00"), Decimal("1.00"), Decimal("1.01"), Decimal("99999.99")),
    "STRING": ("", "a", "ab", "abc", "b", "ba", "é", "\U0001f600", "A", "ab\n"),
    "BOOLEAN": (True, False),
    "DATE": (date(2024, 1, 1), date(2024, 1, 2), date(2023, 12, 31), date(1, 1, 1)),
    "TIMESTAMP": (datetime(2024, 1, 1), datetime(2024, 1, 1, 0, 0, 0, 1)),
}
_CONSTANTS: dict[str, tuple[str, ...]] = {
    "INT": ("0", "1", "2", "3", "-1", "1.5", "2e0", "3000000000", "2147483647"),
    "BIGINT": ("0", "1", "2", "1.5", "9007199254740992e0", "9e18", "1e19"),
    "DOUBLE": ("0e0", "1", "1.5", "2e0", "1e308"),
    "DECIMAL": ("0", "1", "1.00", "1.005", "1.01", "99999.99", "1e5"),
    "STRING": ("''", "'a'", "'ab'", "'b'", "'abc'", "'é'"),
    "DATE": ("'2024-01-01'", "'2024-01-02'", "'2023-12-31'"),
    "TIMESTAMP": ("'2024-01-01'", "'2024-01-01 00:00:00.000001'"),
}
_PATTERNS = ("'a%'", "'ab%'", "'a'", "'%b'", "'a_'", "'ab%c'", "'%'")
_REGEXES = ("'^a'", "'^ab?$'", "'^ab'", "'b$'", "'^(a|b)$'")


def random_text(random: Random, depth: int) -> str:
    if depth == 0 or random.random() < 0.25:
        return _atom(random)
    inner = [random_text(random, depth - 1) for _ in range(random.randint(2, 3))]
    match random.randrange(9):
        case 0:
            return f"NOT ({inner[0]})"
        case 1:
            return f"({inner[0]}) IS NULL"
        case 2:
            return f"({inner[0]}) IS {random.choice(('TRUE', 'FALSE'))}"
        case 3:
            return f"CASE WHEN {inner[0]} THEN {inner[1]} ELSE {inner[-1]} END"
        case 4:
            return f"coalesce({inner[0]}, {random.choice(('TRUE', 'FALSE', inner[1]))})"
        case 5 | 6:
            return "(" + " AND ".join(inner) + ")"
        case _:
            return "(" + " OR ".join(inner) + ")"


def _atom(random: Random) -> str:
    name = random.choice(list(COLUMNS))
    kind = COLUMNS[name].name
    if kind == "BOOLEAN":
        return random.choice(("b", "NOT b", "b IS NULL", "b = TRUE", "b <=> FALSE", "b <> TRUE"))
    constants = random.choices(_CONSTANTS[kind], k=3)
    operator = random.choice(("=", "<>", "<", "<=", ">", ">=", "<=>"))
    forms = [
        f"{name} {operator} {constants[0]}",
        f"{name} {operator} {constants[0]}",
        f"{constants[0]} {operator} {name}",
        f"{name} IN ({', '.join(constants)})",
        f"{name} NOT IN ({', '.join(constants[:2])})",
        f"{name} BETWEEN {constants[0]} AND {constants[1]}",
        f"{name} IS NULL",
        f"{name} IS NOT NULL",
    ]
    return random.choice([*forms, *_special(random, name, kind, operator)])


def _special(random: Random, name: str, kind: str, operator: str) -> list[str]:
    if kind == "STRING":
        return [
            f"{name} LIKE {random.choice(_PATTERNS)}",
            f"{name} RLIKE {random.choice(_REGEXES)}",
            f"startswith({name}, {random.choice(_CONSTANTS['STRING'])})",
            f"length({name}) {operator} {random.randint(-1, 3)}",
            f"s {operator} t",
            f"coalesce({name}, 'a') {operator} 'ab'",
        ]
    if kind in {"DATE", "TIMESTAMP"}:
        return [f"month({name}) {operator} {random.choice((0, 1, 12, 13))}"]
    return [
        f"x {operator} {random.choice(('y', 'z', 'd', 'm'))}",
        f"{name} {operator} {name}",
        f"coalesce(x, 1) {operator} {random.randint(0, 3)}",
        f"x + 1 {operator} {random.randint(0, 3)}",
    ]


def rows(random: Random, count: int) -> Iterator[dict[str, Value]]:
    """Rows of edge values and NULL; the first of them is NULL throughout."""
    yield dict.fromkeys(COLUMNS)
    for _ in range(count):
        yield {
            name: None if random.random() < 0.2 else random.choice(_EDGES[kind.name])
            for name, kind in COLUMNS.items()
        }
