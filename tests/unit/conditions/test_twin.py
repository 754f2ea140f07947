"""The Python twin: what it says of NULL, and of the values where systems differ."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from decimal import Decimal
from math import inf, nan
from pathlib import Path
from random import Random

import pytest
from tests.support.random_expressions import COLUMNS, KINDS, random_expr
from tests.support.random_rows import BATCH_TIME, random_rows

from headgate.conditions.evaluator.evaluate import evaluate
from headgate.conditions.evaluator.values import Day, Value, as_date, day_of, days_of
from headgate.conditions.parser import parse_value
from headgate.conditions.spark_sql import to_spark
from headgate.declarations.types import BOOLEAN, DOUBLE, INT, STRING

CONDITIONS = Path(__file__).parents[3] / "docs" / "conditions.md"
NULLS = {"x": INT, "s": STRING, "c": BOOLEAN, "d": DOUBLE}
SAID: dict[str, Value] = {"NULL": None, "TRUE": True, "FALSE": False}


def twin(text: str, **row: Value) -> Value:
    return evaluate(parse_value(text, COLUMNS, batch_time=True), row, BATCH_TIME)


def test_the_documented_null_semantics_are_the_twins() -> None:
    table = CONDITIONS.read_text().partition("## NULL")[2].partition("## What")[0]
    documented = re.findall(r"^\| `(.+)` \| (\w+) \|$", table, re.MULTILINE)
    wrong = [
        text
        for text, said in documented
        if evaluate(parse_value(text, NULLS), {}) != (SAID[said] if said in SAID else int(said))
    ]
    assert len(documented) > 40
    assert wrong == []


@pytest.mark.parametrize(
    ("text", "row", "expected"),
    [
        ("d = e", {"d": nan, "e": nan}, True),
        ("d > e", {"d": nan, "e": inf}, True),
        ("d = e", {"d": 0.0, "e": -0.0}, True),
        ("n = d", {"n": (1 << 53) + 1, "d": float(1 << 53)}, True),
        ("s < t", {"s": "\uffff", "t": "\U00010000"}, True),
        ("i + j", {"i": 2147483647, "j": 1}, None),
        ("i % j", {"i": -7, "j": 2}, -1),
        ("m * m", {"m": Decimal("-1.50")}, Decimal("2.2500")),
        ("round(m, 1)", {"m": Decimal("-0.25")}, Decimal("-0.3")),
        ("floor(d)", {"d": 1e300}, 9223372036854775807),
        ("CAST(d AS DECIMAL(4, 2))", {"d": 1.005}, Decimal("1.01")),
        ("CAST(s AS DOUBLE)", {"s": " 0x1p3 "}, 8.0),
        ("CAST(s AS DECIMAL(9, 2))", {"s": "1e-2147483647"}, None),
        ("CAST(s AS TIMESTAMP_LTZ)", {"s": "12:30"}, None),
        (
            "CAST(s AS TIMESTAMP_LTZ)",
            {"s": "2024-01-01T10:00:00+02:00"},
            datetime(2024, 1, 1, 8, tzinfo=UTC),
        ),
        ("CAST(s AS TIMESTAMP)", {"s": "2024-01-01 10:00:00+02:00"}, None),
        ("CAST(s AS DATE)", {"s": "2024-1 "}, date(2024, 1, 1)),
        ("substring(s, -2, 9)", {"s": "a\U0001f600b"}, "\U0001f600b"),
        ("lower(s)", {"s": "\u0391\u03a3\u0130"}, "\u03b1\u03c3i\u0307"),
        ("lower(s)", {"s": "a\U0001171e\u03a3"}, "a\U0001171e\u03c3"),
        ("lower(s)", {"s": "a\U0001e030\u03a3"}, "a\U0001e030\u03c2"),
        ("year(day)", {"day": (1 << 31) - 1}, 5881580),
        ("CAST(day AS STRING)", {"day": -719_529}, "-0001-12-31"),
        ("seconds_between(session.batch_time, tz)", {"tz": BATCH_TIME.replace(second=1)}, 8),
        ("s RLIKE '^a+$'", {"s": "aa\n"}, False),
        ("s LIKE 'a_\\\\%'", {"s": "a\n%"}, True),
    ],
)
def test_it_says_what_spark_says(text: str, row: dict[str, Value], expected: Value) -> None:
    assert twin(text, **row) == expected


@pytest.mark.heavy
def test_every_day_has_a_date_and_back() -> None:
    some = [*range(-800_000, 800_000, 97), -(1 << 31), (1 << 31) - 1]
    assert [days_of(day_of(days)) for days in some] == some
    plain = [as_date(days) for days in range(-719_162, 2_932_897, 101)]
    assert [(day.year, day.month, day.day) for day in plain if isinstance(day, date)] == [
        day_of(days) for days in range(-719_162, 2_932_897, 101)
    ]
    assert days_of(Day(2023, 2, 29)) is None


def test_it_never_raises() -> None:
    rng = Random(7)
    rows = random_rows(rng, 5)
    for _ in range(150):
        tree = random_expr(rng, rng.choice(KINDS), 3)
        for row in rows:
            found = evaluate(tree, row, BATCH_TIME)
            assert found is None or tree.type.name != "BOOLEAN" or isinstance(found, bool), (
                to_spark(tree)
            )
