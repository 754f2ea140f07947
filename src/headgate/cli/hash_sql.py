"""`headgate hash sql`: the Spark SQL expression that hashes a table's rows by a contract."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from headgate.terminal.cli_console import console


@dataclass(frozen=True)
class Expression:
    """One expression of built-in functions; its value is the row's hash."""

    contract: str
    hash_version: int
    sql: str


@click.command()
@click.argument("contract", type=click.Path(path_type=Path))
@click.option(
    "--column", "columns", multiple=True, metavar="NAME=TYPE", help="A column's type in the table."
)
def hash_sql(contract: Path, columns: tuple[str, ...]) -> None:
    """Print the expression; it takes built-in functions alone, and never raises.

    Name the types of columns that are not the usual ones (DECIMAL(38, scale), BIGINT, TIMESTAMP): the
    expression is quicker then, and a type that does not fit is refused here.

    \b
    Examples:
      headgate hash sql contracts/business_table.hash.yml
      headgate hash sql contracts/business_table.hash.yml --column 'col2=decimal(10,2)'
    """
    from headgate.hashing.hash_contract_loader import load_contract
    from headgate.hashing.spark import row_hash_sql, usual_types

    found = load_contract(contract).value
    types = {**usual_types(found), **dict(_pair(column) for column in columns)}
    expression = Expression(found.name, found.hash_version, row_hash_sql(found, types))
    console.data(expression, text=expression.sql)


def _pair(column: str) -> tuple[str, str]:
    from headgate.errors import UsageError

    name, sign, kind = column.partition("=")
    if not (name and sign and kind):
        raise UsageError(f"`{column}` names no type", fix="write NAME=TYPE, as col2=decimal(10,2)")
    return name, kind
