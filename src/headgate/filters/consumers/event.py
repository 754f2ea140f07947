"""A routed record as a consumer reads it: its delivery identity, and the event in plain or registry-framed JSON.

The delivery is equal for every copy that the router may write of one source record.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import cast

from headgate.core.kafka.schema_registry import MAGIC, UnreadableError, unframed

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


NOT_GIVEN = "not given"
# A creation tells of a new row: there is one for each id.
CREATIONS = frozenset({"c", "r"})


class NoEventError(ValueError):
    """The record holds no event; the words say why."""


@dataclass(frozen=True)
class ServiceEvent:
    """One event: its row, and the parsed `header_data`."""

    id: str
    type: str
    op: str
    data: Mapping[str, object]

    @property
    def dealer(self) -> str | None:
        found = self.data.get("dealerId")
        return found if isinstance(found, str) and found else None

    @property
    def amount(self) -> Decimal | None:
        """None when there is none, or what is there is no number."""
        found = self.data.get("amountPaid")
        if isinstance(found, bool) or not isinstance(found, (int, Decimal, str)):
            return None
        try:
            amount = Decimal(found)
        except InvalidOperation:
            return None
        return amount if amount.is_finite() and abs(amount.adjusted()) <= 30 else None

    def shown(self, name: str) -> str:
        """A field as a log may show it: nothing in it can forge a line."""
        found = self.data.get(name)
        return NOT_GIVEN if found in (None, "") else printable(found)

    @property
    def shown_amount(self) -> str:
        if self.amount is not None:
            return f"${self.amount:.2f}"
        given = self.shown("amountPaid")
        return given if given == NOT_GIVEN else f"{given} (no number)"


def read_event(value: bytes | None) -> ServiceEvent:
    """The event in a record's value."""
    if value is None:
        raise NoEventError("it is a tombstone")
    row = _object(_text(value), "the value")
    data = row.get("header_data")
    if isinstance(data, str):
        data = _object(data.encode("utf-8", "replace"), "header_data")
    head = cast("dict[str, object]", data) if isinstance(data, dict) else {}
    id, kind, op = (row.get(name) for name in ("id", "event_type", "__op"))
    if not isinstance(id, str) or not id:
        raise NoEventError("it has no id")
    return ServiceEvent(id, str(kind or ""), str(op or ""), head)


def _text(value: bytes) -> bytes:
    """JSON never begins with a zero byte, a registry's frame always does."""
    if value[:1] != bytes([MAGIC]):
        return value
    try:
        return unframed(value).payload
    except UnreadableError as error:
        raise NoEventError(str(error)) from None


def _object(text: bytes, name: str) -> dict[str, object]:
    try:
        found: object = json.loads(text, parse_float=Decimal)
    except (ValueError, RecursionError) as error:
        raise NoEventError(f"{name} is no JSON: {printable(error)}") from None
    if not isinstance(found, dict):
        raise NoEventError(f"{name} is no JSON object")
    return cast("dict[str, object]", found)


def printable(value: object) -> str:
    """One line of at most 200 characters."""
    text = value if isinstance(value, str) else str(value)
    return (text if text.isprintable() else ascii(text)[1:-1])[:200]
