"""A routed record as a consumer reads it: plain or registry-framed JSON, and what it says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import cast

from headgate.core.kafka.frame import MAGIC, UnreadableError, unframed

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
