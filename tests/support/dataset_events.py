"""Valid records of the test dataset, generated from a seed."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from random import Random
from typing import Any

NAMES = (
    "Ann",
    "Zoë",
    "李",
    'o\'Neil \\ "x"',
    "",
    " two  blanks ",
    "tab\tline\nend",
    "😀",
    "a/b</c>",
)
START = datetime(2024, 1, 1, 10)
DAYS = 4  # silver writes a file for each day that a commit touches


def event(rng: Random, number: int, days: int = DAYS) -> dict[str, Any]:
    """An event whose fields are all of their declared types; any but the key may be null."""
    at = START + timedelta(seconds=rng.randrange(86_400 * days))
    fields: dict[str, Any] = {
        "id": number,
        "at": at.isoformat(),
        "seen": (at + timedelta(seconds=rng.randrange(100))).isoformat(),
        "name": rng.choice(NAMES),
        "amount": rng.choice((0.0, -0.5, 1.5, 12.25, 1e-7, 1e21, rng.random() * 100)),
        "price": rng.randrange(10_000) / 4,
        "flag": rng.random() < 0.5,
        "n": rng.randrange(-(2**31), 2**31),
        "day": at.date().isoformat(),
    }
    for name in ("seen", "name", "amount", "price", "flag", "n", "day"):
        if rng.random() < 0.1:
            fields[name] = None
    return fields


def compact(fields: dict[str, Any]) -> bytes:
    """The event as compact JSON, as our generator writes it."""
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()


def events(seed: int, count: int, first: int = 0, days: int = DAYS) -> list[bytes]:
    """So many encoded events, numbered from `first`."""
    rng = Random(seed)
    return [compact(event(rng, number, days)) for number in range(first, first + count)]
