"""Masks fields whose names suggest a person, a vehicle or money; of objects shows names and kinds of values only."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, cast

from headgate.config.reference import MASK
from headgate.filters.spec import JSON_COLUMN, AllOf, AnyCondition, AnyOf, Filter, NotOf

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


def asked_fields(filters: Iterable[Filter]) -> frozenset[str]:
    """The paths into header_data that the conditions ask about, without that word."""
    prefix = f"{JSON_COLUMN}."
    fields = (field for one in filters for part in one.conditions for field in _fields(part))
    return frozenset(field.removeprefix(prefix) for field in fields if field.startswith(prefix))


def masked_fields(filters: Iterable[Filter]) -> frozenset[str]:
    """The fields that conditions ask about and no sample shows: tagged ones, and header_data whole."""
    fields = (field for one in filters for part in one.conditions for field in _fields(part))
    return frozenset(field for field in fields if field == JSON_COLUMN or _is_masked(field))


def _is_masked(field: str) -> bool:
    # An object or a list has no text of its own, so that what is inside of it is asked for by name.
    column, *names = re.split(r"[.\[\]]", field)
    return column == JSON_COLUMN and any(is_tagged(name) for name in names)


def is_tagged(name: str) -> bool:
    return any(word.lower() in TAGGED for word in _WORD.findall(name))


def masked_columns(columns: Mapping[str, str | int | None]) -> dict[str, str | int | None]:
    """The plain columns; header_data is shown apart."""
    plain = {name: value for name, value in columns.items() if name != JSON_COLUMN}
    return {name: _short(value) for name, value in plain.items()}


def masked_header(text: str | int | None, asked: Collection[str]) -> dict[str, object] | None:
    """header_data with every value masked that no condition asks about; None when it is no object."""
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
        return _short(value)
    return None if value is None else MASK


def _short(value: Any) -> Any:
    cut = isinstance(value, str) and len(value) > MOST_TEXT
    return f"{value[:MOST_TEXT]}…" if cut else value


def _fields(part: AnyCondition) -> Iterable[str]:
    match part:
        case AllOf():
            return [field for item in part.all for field in _fields(item)]
        case AnyOf():
            return [field for item in part.any for field in _fields(item)]
        case NotOf():
            return _fields(part.not_)
        case _:
            return [part.field]
