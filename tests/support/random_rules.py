"""Random rules, each with the same condition in DuckDB's SQL, written without our compiler."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa

COLUMNS = {
    "id": "STRING",
    "i": "INT",
    "n": "BIGINT",
    "d": "DOUBLE",
    "e": "DOUBLE",
    "m": "DECIMAL(10, 2)",
    "s": "STRING",
    "t": "STRING",
    "flag": "BOOLEAN",
    "day": "DATE",
    "moment": "TIMESTAMP(3)",
}
NUMBERS = ("i", "n", "d", "e", "m")
TEXTS = ("s", "t")
WORDS = ("a", "b", "ab", "ba", "abc", "", "Z", "it's", "50%", "a_b")
SEVERITIES = ("ERROR", "WARN", "INFO")
START = datetime(2024, 1, 1, 10, tzinfo=UTC)
_ARROW = pa.schema(
    [
        ("id", pa.string()),
        ("i", pa.int32()),
        ("n", pa.int64()),
        ("d", pa.float64()),
        ("e", pa.float64()),
        ("m", pa.decimal128(10, 2)),
        ("s", pa.string()),
        ("t", pa.string()),
        ("flag", pa.bool_()),
        ("day", pa.date32()),
        ("moment", pa.timestamp("us", tz="UTC")),
    ]
)


@dataclass(frozen=True)
class RandomRule:
    """A rule of a rule set, and the condition under which DuckDB finds a row bad."""

    rule: dict[str, Any]
    bad: str

    @property
    def severity(self) -> str:
        return self.rule["severity"]


def random_rows(draws: Random, count: int) -> pa.Table:
    return pa.Table.from_pylist([_row(draws, at) for at in range(count)], _ARROW)


def _row(draws: Random, at: int) -> dict[str, Any]:
    row = {
        "i": draws.randint(-3, 9),
        "n": draws.choice([draws.randint(-9, 99), 2**40]),
        "d": draws.choice([draws.randint(-5, 20) / 4, -0.0, 1e300]),
        "e": draws.randint(-8, 8) / 2,
        "m": Decimal(draws.randint(-500, 9_999)) / 100,
        "s": draws.choice(WORDS),
        "t": draws.choice(WORDS),
        "flag": draws.random() < 0.5,
        "day": date(2024, 1, 1) + timedelta(days=draws.randint(0, 9)),
        "moment": START + timedelta(seconds=draws.randint(0, 59)),
    }
    row = {name: None if draws.random() < 0.12 else value for name, value in row.items()}
    return {"id": f"k{at}", **row}


def random_rules(draws: Random, count: int) -> list[RandomRule]:
    found: list[RandomRule] = []
    for at in range(count):
        rule, bad = draws.choice(_KINDS)(draws)
        given = {"name": f"rule_{at}", "severity": draws.choice(SEVERITIES), **rule}
        found.append(RandomRule(given, bad))
    return found


def _condition(draws: Random) -> tuple[dict[str, Any], str]:
    text = condition(draws, draws.randint(0, 3))
    return {"when": text}, text


def condition(draws: Random, depth: int) -> str:
    """Text that Spark and DuckDB read alike."""
    if depth == 0:
        return draws.choice(_ATOMS)(draws)
    left, right = condition(draws, depth - 1), condition(draws, draws.randrange(depth))
    return draws.choice([f"({left}) AND ({right})", f"({left}) OR ({right})", f"NOT ({left})"])


def _number(draws: Random) -> str:
    return draws.choice([str(draws.randint(-4, 12)), f"{draws.randint(-9, 40)}.25"])


def _text(draws: Random) -> str:
    return "'" + draws.choice([word for word in WORDS if "'" not in word]) + "'"


_ATOMS = (
    lambda d: f"{d.choice(NUMBERS)} {d.choice(['<', '<=', '=', '<>', '>=', '>'])} {_number(d)}",
    lambda d: f"{d.choice(NUMBERS)} {d.choice(['<', '=', '>'])} {d.choice(NUMBERS)}",
    lambda d: f"{d.choice(TEXTS)} {d.choice(['=', '<>', '<', '>='])} {_text(d)}",
    lambda d: "s = t",
    lambda d: f"{d.choice(list(COLUMNS)[1:])} IS {d.choice(['', 'NOT '])}NULL",
    lambda d: f"{d.choice(TEXTS)} {d.choice(['', 'NOT '])}IN ({_text(d)}, {_text(d)}, {_text(d)})",
    lambda d: f"i {d.choice(['', 'NOT '])}IN ({d.randint(-3, 3)}, {d.randint(4, 9)})",
    lambda d: f"{d.choice(NUMBERS)} BETWEEN {d.randint(-4, 2)} AND {d.randint(3, 12)}",
    lambda d: f"{d.choice(TEXTS)} LIKE '{d.choice(['a%', '%b', '_', 'a_%', '%'])}'",
    lambda d: f"length({d.choice(TEXTS)}) > {d.randint(0, 3)}",
    lambda d: f"day {d.choice(['<', '>='])} DATE '2024-01-0{d.randint(1, 9)}'",
    lambda d: f"moment {d.choice(['<', '>='])} TIMESTAMP '2024-01-01 10:00:{d.randint(10, 59)}'",
    lambda d: d.choice(["flag", "NOT flag"]),
    lambda d: f"coalesce(i, 0) + 1 > {d.randint(-3, 9)}",
)


def _required(draws: Random) -> tuple[dict[str, Any], str]:
    fields = draws.sample(list(COLUMNS)[1:], draws.randint(1, 3))
    return {"type": "required", "fields": fields}, " OR ".join(f"{f} IS NULL" for f in fields)


def _range(draws: Random) -> tuple[dict[str, Any], str]:
    field, low, high = draws.choice(NUMBERS), draws.randint(-4, 2), draws.randint(3, 12)
    nulls = draws.choice(["default", "fail", "skip"])
    bad = f"{field} < {low} OR {field} > {high}"
    rule = {"type": "range", "field": field, "min": low, "max": high, "null_handling": nulls}
    return rule, f"{bad} OR {field} IS NULL" if nulls == "fail" else bad


def _lookup(draws: Random) -> tuple[dict[str, Any], str]:
    values = draws.sample(WORDS, 3)
    kind, field = draws.choice(["lookup_in", "lookup_not_in"]), draws.choice(TEXTS)
    listed = ", ".join("'" + value.replace("'", "''") + "'" for value in values)
    bad = f"{field} {'NOT ' if kind == 'lookup_in' else ''}IN ({listed})"
    return {"type": kind, "field": field, "values": values}, bad


def _cross(draws: Random) -> tuple[dict[str, Any], str]:
    left, right = draws.sample(NUMBERS, 2)
    op = draws.choice(["<", "<=", "=", ">=", ">"])
    rule = {"type": "cross_field", "left": left, "op": op, "right": right}
    return rule, f"NOT ({left} {op} {right})"


def _regex(draws: Random) -> tuple[dict[str, Any], str]:
    pattern = draws.choice(["[ab]+", "a.*", "[a-z]{2}", "a|b", "[^a]*"])
    field = draws.choice(TEXTS)
    bad = f"NOT regexp_full_match({field}, '{pattern}', 's')"
    return {"type": "regex", "field": field, "pattern": f"^({pattern})$"}, bad


_KINDS = (_condition, _condition, _condition, _required, _range, _lookup, _cross, _regex)
