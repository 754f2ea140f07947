"""`headgate hash check`: every fault of the hash contracts at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headgate.terminal.cli_console import console
from headgate.terminal.project import below

if TYPE_CHECKING:
    from headgate.errors import Fault


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
    from headgate.hashing.hash_contract_loader import contract_files, load_contract

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
