"""Values as a person sees them beside each other: what looks alike is written so that it does not."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

from headgate.reconcile.differences_kinds import Kind

LONGEST = 200
# Two such texts look the same on a screen.
LOOK_ALIKE: frozenset[Kind] = frozenset({"unicode_form", "trim"})


def shown_key(pk: str) -> str:
    """A key in one line; what a terminal would obey, or could not show, is written as an escape."""
    return _short(pk if pk.isprintable() else ascii(pk)[1:-1])


def shown_value(value: object, kind: Kind = "real") -> str | None:
    """A value in one line; None is NULL."""
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case str():
            return _text(value, kind)
        case bytes():
            return _short(f"0x{value.hex()}")
        case datetime():
            return _moment(value)
        case date():
            return value.isoformat()
        case Decimal():
            return f"{value:f}"
        case _:
            return _short(str(value))


def _text(value: str, kind: Kind) -> str:
    """In quotes; with escapes for what cannot be seen."""
    if kind in LOOK_ALIKE or not value.isprintable():
        return _short(ascii(value))
    return _short(f"'{value}'")


def _moment(value: datetime) -> str:
    if value.tzinfo is None:
        return value.isoformat()
    return value.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
