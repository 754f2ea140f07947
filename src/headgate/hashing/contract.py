"""A hash contract: which fields of a row are hashed, in which order and how; read from its file.

`load_contract` raises DeclarationError with every fault and its line. Version 1 loads with a note,
because rows that differ can have the same text in it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, StrictBool
from pydantic.dataclasses import dataclass

from headgate.declarations.document import Text, read_document, text_of, validate
from headgate.declarations.errors import Declared, Refusal
from headgate.errors import DeclarationError
from headgate.hashing.types import HashType, checked, read_hash_type

_STRICT = ConfigDict(extra="forbid", str_strip_whitespace=True)
Algorithm = Literal["SHA-256", "SHA-512", "MD5"]
Found = Iterator[tuple[str, str, str]]


@dataclass(frozen=True, config=_STRICT)
class HashField:
    """One field that is hashed; `kind` is its type with all that was said of it."""

    name: Annotated[Text, Field(description="The field's name in the row, case and all.")]
    type: Annotated[
        Text,
        Field(
            description="The logical type, also in one line.",
            examples=["string", "decimal", "decimal(2)", "timestamp(ms)", "map<string,integer>"],
        ),
    ]
    scale: Annotated[
        int | None,
        Field(strict=True, ge=0, description="Digits behind the point; left out: the exact value."),
    ] = None
    unit: Annotated[
        Literal["s", "ms", "us"] | None, Field(description="Of a timestamp; finer parts are cut.")
    ] = None
    string: Annotated[
        Literal["raw", "nfc"], Field(description="As it is, or in Unicode normal form C.")
    ] = "raw"
    trim: Annotated[StrictBool, Field(description="Blanks at the ends do not count.")] = False
    nulls: Annotated[
        Literal["own", "empty"], Field(description="Null is itself, or counts as the empty value.")
    ] = "own"
    sensitive: Annotated[
        StrictBool, Field(description="Values are masked where differences are shown.")
    ] = False

    @cached_property
    def kind(self) -> HashType:
        """The whole type; a Refusal when its parts do not fit together."""
        said = {
            "scale": self.scale,
            "unit": self.unit,
            "nfc": self.string == "nfc" or None,
            "trim": self.trim or None,
            "nulls_empty": self.nulls == "empty" or None,
        }
        kind = read_hash_type(self.type)
        given = {key: value for key, value in said.items() if value is not None}
        for key, value in given.items():
            if getattr(kind, key) not in (None, False, value):
                raise Refusal(f"`{self.type}` has another {key} already", "Keep one of them.")
        return checked(replace(kind, **given))


@dataclass(frozen=True, config=_STRICT)
class HashContract:
    """What both sides have agreed on; `hash_version` travels with every hash."""

    name: Annotated[Text, Field(description="What the contract is called.")]
    fields: Annotated[
        tuple[HashField, ...],
        Field(min_length=1, description="What is hashed, in this order; nothing else counts."),
    ]
    hash_version: Annotated[
        Literal[1, 2], Field(description="2, or 1 for the older, ambiguous form.")
    ] = 2
    algorithm: Annotated[Algorithm, Field(description="Other than SHA-256 in version 1 only.")] = (
        "SHA-256"
    )

    def at_version(self, hash_version: Literal[1, 2]) -> HashContract:
        """The same fields by another version, which version 2 has with SHA-256 alone."""
        algorithm = self.algorithm if hash_version == 1 else "SHA-256"
        return replace(self, hash_version=hash_version, algorithm=algorithm)

    @property
    def in_one_line(self) -> str:
        """As connectors take it: `col1:string,col2:decimal(2)`."""
        return ",".join(f"{field.name}:{field.kind}" for field in self.fields)


def faults_of(contract: HashContract) -> Found:
    """What pydantic cannot see: where, what, and what to write instead."""
    for at, field in enumerate(contract.fields):
        try:
            _ = field.kind
        except Refusal as refusal:
            yield f"fields[{at}].type", refusal.what, refusal.fix
    counted = Counter(field.name for field in contract.fields)
    for at, field in enumerate(contract.fields):
        if counted[field.name] > 1:
            yield f"fields[{at}].name", f"`{field.name}` is there twice", "Keep one."
    if contract.hash_version == 2 and contract.algorithm != "SHA-256":
        yield "algorithm", "version 2 has SHA-256 alone", "Leave it out, or take `hash_version: 1`."


def contract_of(
    name: str, types: Mapping[str, str], hash_version: Literal[1, 2] = 2
) -> HashContract:
    """A contract from names and one-line types; a Refusal when one of them is none."""
    fields = tuple(HashField(name=key, type=kind) for key, kind in types.items())
    for field in fields:
        _ = field.kind
    return HashContract(name=name, fields=fields, hash_version=hash_version)


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
