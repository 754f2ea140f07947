"""The hash of a planted row by the table's own contract, in the version that is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal, cast

from headgate.demo.reconcile.model import Cell
from headgate.demo.reconcile.sayings import HashOf
from headgate.hashing.hash_contract import HashContract
from headgate.hashing.rows import row_hash


def hash_by(contract: HashContract) -> HashOf:
    """What an on-prem side that follows the contract would send."""
    versions = {number: replace(contract, hash_version=_version(number)) for number in (1, 2)}

    def hashed(values: Mapping[str, Cell], version: int) -> str:
        return row_hash(versions[version], values)

    return hashed


def _version(number: int) -> Literal[1, 2]:
    return cast("Literal[1, 2]", number)
