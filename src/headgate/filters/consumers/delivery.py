"""Which delivery a record is: the same one again is known by where it came from, not by where it lies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

ORIGIN, SOURCE_ID, FILTER = "headgate.origin", "headgate.source_id", "headgate.filter"


@dataclass(frozen=True)
class Record:
    """A record of the consumer's topic."""

    topic: str
    partition: int
    offset: int
    value: bytes | None
    headers: Mapping[str, str]

    @property
    def place(self) -> str:
        return f"{self.topic}/{self.partition}/{self.offset}"


@dataclass(frozen=True)
class Delivery:
    """A record's identity: equal for every copy that the router may write of one source record.

    `source_id` changes when the source topic is made anew, whose offsets then begin again.
    """

    source_id: str
    origin: str
    filter: str

    @property
    def key(self) -> str:
        """What another system may keep, to know the same effect when it comes again."""
        return f"{self.source_id}/{self.origin}/{self.filter}"


def delivery_of(record: Record) -> Delivery:
    """By the router's headers; a record from elsewhere is itself."""
    origin = record.headers.get(ORIGIN)
    if not origin:
        return Delivery("", record.place, "")
    return Delivery(record.headers.get(SOURCE_ID, ""), origin, record.headers.get(FILTER, ""))


def headers_of(given: Sequence[tuple[str, bytes | str | None]] | None) -> dict[str, str]:
    """Headers as text; the last of two with one name."""
    return {
        name: value.decode("utf-8", "replace") if isinstance(value, bytes) else value or ""
        for name, value in given or ()
    }
