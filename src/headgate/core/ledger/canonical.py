"""How the ops store writes JSON, decided here alone: sorted keys, no white space."""

from __future__ import annotations

import hashlib
from typing import Any

import orjson


def canonical(value: object) -> str:
    """The one text of a JSON value: equal values give equal texts."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def parse(text: str) -> Any:
    return orjson.loads(text)


def fingerprint(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
