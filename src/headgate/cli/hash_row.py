"""`headgate hash row`: the hash of one row by a contract, and the text that is hashed."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import click

from headgate.terminal.cli_console import console


@dataclass(frozen=True)
class Hashed:
    """What a row was made into; `text` shows bytes that are no UTF-8 as escapes."""

    contract: str
    hash_version: int
    hash: str
    text: str | None = None
    text_hex: str | None = None


@click.command()
@click.argument("contract", type=click.Path(path_type=Path))
@click.argument("row")
@click.option("--text", "with_text", is_flag=True, help="Also show the text that is hashed.")
@click.option("--version", type=click.Choice(["1", "2"]), help="Instead of the contract's own.")
def hash_row(contract: Path, row: str, with_text: bool, version: str | None) -> None:
    """Hash one row, given as a JSON object, as the name of a file with one, or as - for stdin.

    Numbers may be JSON numbers or text, times are ISO 8601, bytes hexadecimal, maps objects or lists
    of pairs. Fields that the contract does not name do not count; one that it names must be there.

    \b
    Examples:
      headgate hash row contracts/business_table.hash.yml row.json
      headgate hash row contracts/business_table.hash.yml - --text < row.json
      headgate -o json hash row contracts/business_table.hash.yml row.json --version 1
    """
    hashed = hash_given_row(contract, _text_of(row), with_text, version)
    said = hashed.hash if hashed.text is None else f"{hashed.text}\n{hashed.hash}"
    console.data(hashed, text=said)


def hash_given_row(file: Path, row: str, with_text: bool, version: str | None) -> Hashed:
    """The row in this JSON text, hashed."""
    from headgate.hashing.hash_contract_loader import load_contract
    from headgate.hashing.rows import row_hash, row_text
    from headgate.hashing.typed_json import parse_row

    contract = load_contract(file).value
    if version is not None:
        contract = contract.at_version(1 if version == "1" else 2)
    found = parse_row(contract, row)
    text = row_text(contract, found)
    hashed = row_hash(contract, found)
    if not with_text:
        return Hashed(contract.name, contract.hash_version, hashed)
    shown = text.decode("utf-8", "backslashreplace")
    return Hashed(contract.name, contract.hash_version, hashed, shown, text.hex())


def _text_of(row: str) -> str:
    from headgate.errors import UsageError

    if row.lstrip().startswith("{"):
        return row
    try:
        return sys.stdin.read() if row == "-" else Path(row).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"`{row}` cannot be read as a row",
            why=str(error),
            fix='write the row as JSON, {"field": value}, or the name of a file with it',
        ) from None
