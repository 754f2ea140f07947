"""Reads a hash contract: every fault at once, each with its file and line."""

from __future__ import annotations

from pathlib import Path

from headgate.declarations.declared import Declared
from headgate.declarations.model import validate
from headgate.declarations.spec_document import read_document, text_of
from headgate.errors import DeclarationError
from headgate.hashing.hash_contract import HashContract, faults_of

FOLDER = Path("contracts")
SUFFIX = ".hash.yml"
AMBIGUOUS = "version 1 is ambiguous: rows that differ can have equal hashes; take version 2"


def contract_files(root: Path) -> tuple[Path, ...]:
    """The contracts declared under `root`, sorted."""
    return tuple(sorted((root / FOLDER).glob(f"*{SUFFIX}")))


def load_contract(path: Path) -> Declared[HashContract]:
    """The contract in `path`; raises DeclarationError with all faults."""
    document = read_document(str(path), text_of(path), {})
    contract = validate(HashContract, document) if isinstance(document.data, dict) else None
    if contract is None and not document.faults:
        document.add("", "the contract is not a mapping", "Write `key: value` lines.", line=1)
    for pointer, what, fix in faults_of(contract) if contract else ():
        document.add(pointer, what, fix)
    if contract is None or document.faults:
        raise DeclarationError(sorted(document.faults, key=lambda fault: fault.line or 0))
    notes = (AMBIGUOUS,) if contract.hash_version == 1 else ()
    return Declared(contract, document.file, document.lines, notes)
