"""Masks fields whose names suggest a person, a vehicle or money; of objects shows names and kinds of values only."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any, cast

from headgate.config.reference import MASK

# Whole words of a field's name: `amountPaid` is amount and paid, `owner_name` owner and name.
TAGGED = frozenset(
    {
        "account", "address", "amount", "balance", "birth", "birthday", "card", "city", "cost",
        "credit", "customer", "dob", "driver", "email", "fee", "firstname", "fullname", "iban",
        "income", "invoice", "lastname", "latitude", "license", "licence", "longitude", "mail",
        "mobile", "owner", "paid", "passport", "password", "payment", "person", "phone", "plate",
        "postcode", "price", "registration", "salary", "secret", "ssn", "street", "surname", "tax",
        "tel", "token", "user", "username", "vin", "zip",
    }
)  # fmt: skip
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
MOST_TEXT = 200


def is_tagged(name: str) -> bool:
    return any(word.lower() in TAGGED for word in _WORD.findall(name))


def masked_header(text: str | int | None, asked: Collection[str]) -> dict[str, object] | None:
    """A JSON object with every value masked whose path is not `asked`; None when the text is no object."""
    try:
        found = json.loads(str(text)) if text is not None else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    return _object(cast("dict[str, Any]", found), asked, "")


def _object(value: dict[str, Any], asked: Collection[str], path: str) -> dict[str, object]:
    return {name: _value(name, part, asked, f"{path}{name}") for name, part in value.items()}


def _value(name: str, value: object, asked: Collection[str], path: str) -> object:
    if is_tagged(name):
        return MASK
    if isinstance(value, dict):
        return _object(cast("dict[str, Any]", value), asked, f"{path}.")
    if isinstance(value, list):
        items = cast("list[object]", value)
        return [_value(name, item, asked, f"{path}[{n}]") for n, item in enumerate(items[:10])]
    if path in asked and isinstance(value, (str, int, float, bool, type(None))):
        return shortened(value)
    return None if value is None else MASK


def shortened(value: Any) -> Any:
    """A text cut to what a sample shows of it; any other value as it is."""
    cut = isinstance(value, str) and len(value) > MOST_TEXT
    return f"{value[:MOST_TEXT]}…" if cut else value
