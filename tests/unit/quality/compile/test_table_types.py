"""Which columns of a table can be what is declared of them."""

from __future__ import annotations

import pytest

from headgate.declarations.types import SqlType
from headgate.quality.compile.columns import misfits


def said(kind: SqlType, has: str) -> list[str]:
    found = misfits("silver.things", "things", {"amount": kind}, {"id": "string", "Amount": has})
    return [fault.sentence() for fault in found]


@pytest.mark.parametrize(
    ("kind", "has"),
    [
        (SqlType("STRING"), "bigint"),
        (SqlType("BIGINT"), "string"),
        (SqlType("BIGINT"), "int"),
        (SqlType("INT"), "decimal(10,0)"),
        (SqlType("DECIMAL", 12, 2), "decimal(10,2)"),
        (SqlType("DOUBLE"), "decimal(10,4)"),
        (SqlType("TIMESTAMP_LTZ", 3), "timestamp_ntz"),
        (SqlType("DATE"), "string"),
    ],
)
def test_what_can_be_read_whole_is_taken(kind: SqlType, has: str) -> None:
    assert said(kind, has) == []


@pytest.mark.parametrize(
    ("kind", "has", "fix"),
    [
        (SqlType("BIGINT"), "double", "Declare DOUBLE."),
        (SqlType("DECIMAL", 12, 2), "decimal(10,4)", "Declare DECIMAL(10,4)."),
        (SqlType("DECIMAL", 12, 2), "double", "Declare DOUBLE."),
        (SqlType("DATE"), "timestamp", "Declare TIMESTAMP(6)."),
        (SqlType("BOOLEAN"), "int", "Declare INT."),
        (SqlType("STRING"), "struct<a:int>", "Declare a plain column of the table, or judge"),
        (SqlType("TIMESTAMP_LTZ", 3), "bigint", "Declare BIGINT."),
    ],
)
def test_what_would_be_cut_or_cannot_be_read_is_told(kind: SqlType, has: str, fix: str) -> None:
    (found,) = said(kind, has)
    assert found.startswith(
        f"things: amount: declared as {kind}, and silver.things has {has.upper()}"
    )
    assert fix in found


def test_a_column_that_is_not_there_is_told_with_the_nearest() -> None:
    found = misfits("silver.things", "things", {"amuont": SqlType("INT")}, {"amount": "int"})
    (fault,) = found
    assert fault.what == "silver.things has no column `amuont`"
    assert "amount" in fault.fix
