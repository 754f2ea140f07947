"""The registry's wire format: a zero byte, the schema's id in four bytes, then the value itself."""

from __future__ import annotations

import struct
from dataclasses import dataclass

MAGIC = 0
BYTES = 5
LARGEST_ID = 2**31 - 1
_HEAD = struct.Struct(">bi")

NOT_FRAMED = "not_framed"
UNKNOWN_SCHEMA = "unknown_schema"
NOT_OF_SCHEMA = "not_of_schema"
REASONS = {
    NOT_FRAMED: "the value has no schema registry's frame",
    UNKNOWN_SCHEMA: "the registry knows no schema of the value's id",
    NOT_OF_SCHEMA: "the value does not fit its schema",
}


class UnreadableError(ValueError):
    """A value that cannot be read: a dead letter with this reason's code, and words without the value."""

    def __init__(self, code: str, why: str) -> None:
        super().__init__(f"{REASONS[code]}: {why}")
        self.code = code
        self.why = why


@dataclass(frozen=True)
class Framed:
    """A value and the id of the schema that it was written by."""

    schema_id: int
    payload: bytes


def framed(schema_id: int, payload: bytes) -> bytes:
    """The value as it is sent."""
    if not 0 <= schema_id <= LARGEST_ID:
        raise ValueError(f"{schema_id} is no schema id")
    return _HEAD.pack(MAGIC, schema_id) + payload


def unframed(value: bytes) -> Framed:
    """What a value carries; an UnreadableError when it is too short or begins otherwise."""
    if len(value) < BYTES:
        raise UnreadableError(NOT_FRAMED, f"it has {len(value)} bytes, a frame has {BYTES}")
    magic, schema_id = _HEAD.unpack_from(value)
    if magic != MAGIC:
        raise UnreadableError(NOT_FRAMED, f"its first byte is {magic & 255}, not {MAGIC}")
    if schema_id < 0:
        raise UnreadableError(NOT_FRAMED, "its id is negative")
    return Framed(schema_id, value[BYTES:])
