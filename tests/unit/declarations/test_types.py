from __future__ import annotations

import pytest

from headgate.declarations.errors import Refusal
from headgate.declarations.types import SqlType, can_cast, decimal, parse_type


@pytest.mark.parametrize(
    ("text", "spark"),
    [
        ("STRING", "STRING"),
        ("int", "INT"),
        ("INTEGER", "INT"),
        ("BIGINT", "BIGINT"),
        ("DOUBLE", "DOUBLE"),
        ("FLOAT", "FLOAT"),
        ("BOOLEAN", "BOOLEAN"),
        ("DATE", "DATE"),
        (" DECIMAL( 10,2 ) ", "DECIMAL(10, 2)"),
        ("TIMESTAMP(3)", "TIMESTAMP_NTZ"),
        ("TIMESTAMP", "TIMESTAMP_NTZ"),
        ("TIMESTAMP_LTZ(3)", "TIMESTAMP"),
    ],
)
def test_a_declared_type_has_a_name_in_spark(text: str, spark: str) -> None:
    assert parse_type(text).spark == spark


@pytest.mark.parametrize(
    "text", ["STRING", "DECIMAL(10, 2)", "TIMESTAMP(3)", "TIMESTAMP_LTZ(6)", "BIGINT"]
)
def test_a_type_prints_as_it_is_declared(text: str) -> None:
    assert str(parse_type(text)) == text


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("VARCHAR(10)", "STRING"),
        ("TEXT", "STRING"),
        ("BIGNIT", "`BIGINT`"),
        ("DECIMAL", "DECIMAL(10, 2)"),
        ("DECIMAL(39, 2)", "38"),
        ("DECIMAL(2, 3)", "38"),
        ("TIMESTAMP(9)", "TIMESTAMP(3)"),
        ("STRING(3)", "STRING"),
        ("ARRAY<INT>", "STRING"),
        ("", "STRING"),
    ],
)
def test_another_type_is_refused_with_what_to_write(text: str, fix: str) -> None:
    with pytest.raises(Refusal) as caught:
        parse_type(text)
    assert fix in caught.value.fix


def test_types_that_spark_cannot_cast_are_known() -> None:
    assert can_cast(SqlType("STRING"), SqlType("DATE"))
    assert can_cast(SqlType("DOUBLE"), decimal(10, 2))
    assert not can_cast(SqlType("BIGINT"), SqlType("TIMESTAMP", 3))
    assert not can_cast(SqlType("DATE"), SqlType("BOOLEAN"))
