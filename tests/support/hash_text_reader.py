"""Reads the hashed text of version 2 back into values: a text that reads in only one way stands for one row.

Written from docs/hash_contract.md alone, without the code that writes such texts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headgate.hashing.types import HashType


@dataclass
class HashTextReader:
    """A cursor in a hashed text."""

    text: bytes
    at: int = 0

    def row(self, kinds: list[HashType]) -> list[Any]:
        """The values of all fields; the text must end with the last."""
        found = [self.value(kind) for kind in kinds]
        assert self.at == len(self.text), "something is left of the text"
        return found

    def value(self, kind: HashType) -> Any:
        tag = self._take(1)
        if tag == b"n":
            assert self._take(1) == b";"
            return None
        match tag, kind.name:
            case (b"s", "string") | (b"u", "uuid"):
                return self._take(int(self._until(b":"))).decode()
            case b"b", "boolean":
                return {"true": True, "false": False}[self._until(b";")]
            case (b"i", "integer") | (b"d", "decimal") | (b"f", "double"):
                return self._until(b";")
            case (b"c", "date") | (b"t", "timestamp"):
                return int(self._until(b";"))
            case b"x", "binary":
                return bytes.fromhex(self._until(b";"))
            case (b"L", "list") | (b"S", "set"):
                return [self.value(kind.items[0]) for _ in range(int(self._until(b":")))]
            case b"M", "map":
                count = int(self._until(b":"))
                return [
                    (self.value(kind.items[0]), self.value(kind.items[1])) for _ in range(count)
                ]
            case _:
                raise AssertionError(f"the tag {tag!r} is not of a {kind}")

    def _take(self, count: int) -> bytes:
        found = self.text[self.at : self.at + count]
        assert len(found) == count, "the text ends too early"
        self.at += count
        return found

    def _until(self, end: bytes) -> str:
        found, _, _ = self.text[self.at :].partition(end)
        self.at += len(found) + 1
        return found.decode("ascii")
