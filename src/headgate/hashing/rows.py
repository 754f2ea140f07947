"""A row's text and hash by a contract, in Python. The specification is docs/hash_contract.md."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from headgate.errors import RowRefusedError
from headgate.hashing.hash_contract import HashContract, HashField
from headgate.hashing.values import UnfitError, Value, Write, old_writer, writer

_DIGESTS = {"SHA-256": hashlib.sha256, "SHA-512": hashlib.sha512, "MD5": hashlib.md5}


def row_hash(contract: HashContract, row: Mapping[str, Value]) -> str:
    """The row's hash, in lower-case hexadecimal; a RowRefusedError when it cannot have one."""
    return _DIGESTS[contract.algorithm](row_text(contract, row)).hexdigest()


def row_text(contract: HashContract, row: Mapping[str, Value]) -> bytes:
    """What is hashed. Fields that the contract does not name do not count."""
    if contract.hash_version == 1:
        ordered = sorted(contract.fields, key=_name_bytes)
        return b"|".join(_text(field, old_writer(field.kind), row) for field in ordered)
    return b"".join(_text(field, writer(field.kind), row) for field in contract.fields)


def _name_bytes(field: HashField) -> bytes:
    return field.name.encode()


def _text(field: HashField, write: Write, row: Mapping[str, Value]) -> bytes:
    if field.name not in row:
        raise RowRefusedError(
            f"the row has no field `{field.name}`",
            why="the hash contract names it; a field that is not there is not the same as null",
            fix="send the field, as null where it has no value, or take it out of the contract",
        )
    try:
        return write(row[field.name])
    except UnfitError as unfit:
        raise RowRefusedError(
            f"`{field.name}` is no {field.kind}",
            why=str(unfit),
            fix="correct the value, or the field's type in the contract",
        ) from None
