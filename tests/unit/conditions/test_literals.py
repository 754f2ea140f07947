from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from math import inf, nan

import pytest
from tests.support.random_expressions import HOSTILE_TEXTS

from headgate.conditions.ast import Literal
from headgate.conditions.literals import LiteralValue, spark_identifier, spark_literal
from headgate.conditions.parser import parse_value
from headgate.declarations.errors import Refusal


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "NULL"),
        (True, "TRUE"),
        (5, "5"),
        (-9223372036854775808, "-9223372036854775808"),
        (0.1, "0.1D"),
        (1e22, "1e+22D"),
        (-0.0, "-0.0D"),
        (nan, "DOUBLE('NaN')"),
        (-inf, "DOUBLE('-Infinity')"),
        (Decimal("5"), "5BD"),
        (Decimal("1.50"), "1.50"),
        (Decimal("1E+3"), "1000BD"),
        (date(2024, 1, 31), "DATE '2024-01-31'"),
        (datetime(2024, 1, 31, 12), "TIMESTAMP_NTZ '2024-01-31 12:00:00'"),
        (
            datetime(2024, 1, 31, 12, tzinfo=timezone(timedelta(hours=2))),
            "TIMESTAMP_LTZ '2024-01-31 10:00:00Z'",
        ),
        ("it's", r"'it\'s'"),
        ("a\\", r"'a\\'"),
        ("${spark.app.name}", r"'\u0024{spark.app.name}'"),
        ("\x00\n\u202e\U000e0041", r"'\u0000\n\u202E\U000E0041'"),
        ("grüß dich", "'grüß dich'"),
    ],
)
def test_a_value_is_one_literal(value: LiteralValue, text: str) -> None:
    assert spark_literal(value) == text


@pytest.mark.parametrize("text", [*HOSTILE_TEXTS, "x" * 65_536])
def test_hostile_text_stays_text(text: str) -> None:
    literal = spark_literal(text)
    assert "${" not in literal
    assert literal.isprintable()
    read = parse_value(literal, {})
    assert isinstance(read, Literal)
    assert read.value == text


def test_half_a_character_is_refused() -> None:
    with pytest.raises(Refusal):
        spark_literal("\ud800")
    with pytest.raises(Refusal):
        spark_literal(Decimal("NaN"))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("VendorID", "VendorID"),
        ("_x1", "_x1"),
        ("date", "`date`"),
        ("Select", "`Select`"),
        ("two words", "`two words`"),
        ("back`tick", "`back``tick`"),
        ("1st", "`1st`"),
        ("größe", "`größe`"),
        ("a-b;--", "`a-b;--`"),
    ],
)
def test_a_name_is_bare_only_when_nothing_else_can_be_read_in_it(name: str, text: str) -> None:
    assert spark_identifier(name) == text


@pytest.mark.parametrize("name", ["", "a\nb", "a\x00", "\u202ea", "${x}"])
def test_a_name_that_cannot_be_quoted_is_refused(name: str) -> None:
    with pytest.raises(Refusal):
        spark_identifier(name)


def test_aware_times_are_utc() -> None:
    assert spark_literal(datetime(1, 1, 1, tzinfo=UTC)) == "TIMESTAMP_LTZ '0001-01-01 00:00:00Z'"
