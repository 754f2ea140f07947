"""The hash as Spark SQL text: short for flat columns, refused where a column does not fit."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.errors import DeclarationError
from headgate.hashing.contract import contract_of, load_contract
from headgate.hashing.spark import row_hash_sql, row_text_sql

ROOT = Path(__file__).parents[3]
TABLE = {
    "pk": "string",
    "col1": "string",
    "col2": "decimal(10,2)",
    "col3": "timestamp",
    "col4": "double",
}


def refused(kind: str, column: str | None) -> str:
    types = None if column is None else {"a": column}
    with pytest.raises(DeclarationError) as error:
        row_hash_sql(contract_of("x", {"a": kind}), types)
    return error.value.faults[0].what


def test_the_shipped_contract_is_one_expression_without_functions_of_functions() -> None:
    contract = load_contract(ROOT / "contracts" / "business_table.hash.yml").value
    sql = row_hash_sql(contract, TABLE, "t1")
    assert sql.startswith("sha2(concat(IF(t1.col1 IS NULL, 'n;', 's'), ")
    assert "unix_millis(t1.col3)" in sql
    assert "->" not in sql
    assert "pk" not in sql


def test_the_same_contract_gives_the_same_text() -> None:
    contract = contract_of("x", {"a": "map<string,set<decimal(2)>>", "b": "integer"})
    assert row_text_sql(contract) == row_text_sql(contract)


def test_names_are_quoted_where_they_must_be() -> None:
    sql = row_text_sql(contract_of("x", {"a b": "integer", "it`s": "integer"}))
    assert "`a b` IS NULL" in sql
    assert "`it``s` IS NULL" in sql


@pytest.mark.parametrize(
    ("kind", "column", "what"),
    [
        ("integer", "string", "a column of type string holds no integer"),
        ("integer", "decimal(10,2)", "a column of type decimal holds no integer"),
        ("decimal(2)", "double", "a column of type double holds no decimal"),
        ("list<integer>", "array<string>", "a column of type string holds no integer"),
        ("map<string,integer>", "array<string>", "a column of type array holds no map"),
        ("string", "struct<a:int>", "`struct<a:int>` is no column type that can be hashed"),
        ("string", "array<", "`array<` is no column type that can be hashed"),
        ("string(nfc)", "string", "Spark SQL has no Unicode normal forms"),
        ("decimal", None, "the column's own scale is not known"),
    ],
)
def test_a_column_that_does_not_fit_is_refused(kind: str, column: str | None, what: str) -> None:
    assert refused(kind, column) == what


def test_a_column_that_the_table_lacks_is_refused() -> None:
    with pytest.raises(DeclarationError, match="one fault"):
        row_hash_sql(contract_of("x", {"a": "string"}), {"b": "string"})
