"""`headgate hash`: check contracts, hash one row, print the Spark SQL, verify the shared vectors.

Everything that is not needed for help is imported when a command is called.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headgate.terminal.console import console
from headgate.terminal.lazy_group import LazyCommands
from headgate.terminal.project import below

if TYPE_CHECKING:
    from headgate.errors import Fault
    from headgate.hashing.typed_json import Difference


@dataclass(frozen=True)
class Contract:
    """A contract that is valid."""

    file: str
    name: str
    hash_version: int
    fields: str
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Checked:
    """What `hash check` found."""

    contracts: tuple[Contract, ...]
    faults: tuple[Fault, ...]
    passed: bool


@click.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
def hash_check(files: tuple[Path, ...]) -> None:
    """Check hash contracts, all of them or those given: every fault at once, each with its line.

    Each valid one is shown in one line, as connectors take it.

    \b
    Examples:
      headgate hash check
      headgate hash check contracts/business_table.hash.yml
      headgate -o json hash check
    """
    from headgate.config.settings import working_root
    from headgate.errors import DeclarationError

    checked = check_contracts(working_root(anywhere=bool(files)), files)
    console.data(checked, text="\n".join(_lines(checked)))
    for contract in checked.contracts:
        for note in contract.notes:
            console.warn(f"{contract.file}: {note}")
    if checked.faults:
        raise DeclarationError(checked.faults)
    counted = (
        "one contract" if len(checked.contracts) == 1 else f"{len(checked.contracts)} contracts"
    )
    console.done(f"{counted}, no faults")


def check_contracts(root: Path, files: tuple[Path, ...]) -> Checked:
    """What is to be said of these files; of all contracts where none is given."""
    from headgate.errors import DeclarationError
    from headgate.hashing.contract import contract_files, load_contract

    contracts, faults = list[Contract](), list["Fault"]()
    for path in tuple(file.resolve() for file in files) or contract_files(root):
        shown = below(path, root)
        try:
            loaded = load_contract(path)
        except DeclarationError as error:
            faults += [replace(fault, file=shown) for fault in error.faults]
            continue
        found = loaded.value
        contracts.append(
            Contract(shown, found.name, found.hash_version, found.in_one_line, loaded.notes)
        )
    return Checked(tuple(contracts), tuple(faults), passed=not faults)


def _lines(checked: Checked) -> Iterator[str]:
    for contract in checked.contracts:
        yield f"{contract.file}  version {contract.hash_version}  {contract.fields}"


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
    from headgate.hashing.contract import load_contract
    from headgate.hashing.python import row_hash, row_text
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
    from headgate.hashing.contract import load_contract
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


_MOST_SHOWN = 20


@dataclass(frozen=True)
class Verified:
    """What `hash vectors` found."""

    file: str
    vectors: int
    traps: dict[str, int]
    differences: tuple[Difference, ...]


@click.command()
@click.argument("file", required=False, type=click.Path(path_type=Path))
def hash_vectors(file: Path | None) -> None:
    """Hash the row of every vector in FILE and compare: text, version 1 and version 2.

    Without FILE it is the one that Python, Spark and Java are all held against. A file of your own
    may come from another implementation: docs/hash_contract.md says what a line is.

    \b
    Examples:
      headgate hash vectors
      headgate hash vectors mine.jsonl
      headgate -o json hash vectors
    """
    from headgate.config.env_files import find_root
    from headgate.errors import DifferenceError
    from headgate.hashing.typed_json import VECTORS_FILE

    verified = verify(file or find_root(Path.cwd()) / VECTORS_FILE)
    shown = [
        f"✗ vector {d.id} ({d.trap}): {d.what}\n    expected  {d.expected}\n    got       {d.got}"
        for d in verified.differences[:_MOST_SHOWN]
    ]
    counts = [f"{n:6,}  {trap}" for trap, n in verified.traps.items()]
    console.data(verified, text="\n".join([*counts, *shown]))
    if verified.differences:
        raise DifferenceError(
            f"{len(verified.differences)} differences in {verified.vectors:,} vectors",
            why="this implementation makes other bytes than the vectors say",
            fix="`headgate -o json hash vectors` shows all; compare the texts byte by byte",
        )
    console.done(f"{verified.vectors:,} vectors agree")


def verify(file: Path) -> Verified:
    """Every vector of the file against Python."""
    from headgate.errors import UsageError
    from headgate.hashing.typed_json import differences, read_vectors

    if not file.is_file():
        raise UsageError(f"there is no file {file}", fix="python tools/hash_vectors.py writes it")
    traps, found = Counter[str](), list["Difference"]()
    for vector in read_vectors(file):
        traps[vector.trap] += 1
        found += differences(vector)
    return Verified(file.name, traps.total(), dict(traps), tuple(found))


VERBS: dict[str, tuple[str, str]] = {
    "check": ("every fault of the hash contracts at once", "headgate.cli.hash:hash_check"),
    "row": (
        "the hash of one row by a contract, and the text that is hashed",
        "headgate.cli.hash:hash_row",
    ),
    "sql": ("the Spark SQL that hashes the rows of a table", "headgate.cli.hash:hash_sql"),
    "vectors": (
        "hold this implementation against the shared vectors",
        "headgate.cli.hash:hash_vectors",
    ),
}


@click.command(cls=LazyCommands, lazy=VERBS)
def group() -> None:
    """Turn rows into the same bytes on both sides, and into hashes that can be compared.

    \b
    Examples:
      headgate hash check
      headgate hash row contracts/business_table.hash.yml row.json --text
      headgate hash vectors
    """
