"""The JSON Schema that a row must meet before it is sent, and the envelope of one that does not."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol, cast

import jsonschema_rs
import orjson

from headgate.errors import DeclarationError, Fault

Row = dict[str, object]


class _Validator(Protocol):
    def is_valid(self, instance: object) -> bool: ...

    def validate(self, instance: object) -> None: ...


class RowContract:
    """A compiled JSON Schema."""

    def __init__(self, file: Path) -> None:
        self._validator = _compiled(file)

    def refusal(self, line: bytes) -> str | None:
        """Why this row is refused; None when it is accepted."""
        try:
            row: object = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            return f"not JSON: {_token(line) or error}"
        if self._validator.is_valid(row):
            return None
        return _complaint(self._validator, row)


def envelope(error: str, line: bytes, moment: datetime) -> bytes:
    """`{error, row, timestamp}`; the envelope is always JSON, also around a row that is not."""
    stamp = moment.astimezone(UTC).isoformat()
    return orjson.dumps({"error": error, "row": _readable(line), "timestamp": stamp})


def _readable(line: bytes) -> object:
    """The row as an object; what JSON cannot say is text there, and a broken row all text."""
    import json

    try:
        return cast("object", json.loads(line, parse_constant=str))
    except ValueError:
        return line.decode("utf-8", errors="backslashreplace")


def _token(line: bytes) -> str:
    found = [token for token in (b"NaN", b"-Infinity", b"Infinity") if b":" + token in line]
    return f"the token {found[0].decode()}" if found else ""


def _complaint(validator: _Validator, row: object) -> str:
    try:
        validator.validate(row)
    except jsonschema_rs.ValidationError as error:
        place = "/".join(str(step) for step in error.instance_path)
        return f"{place}: {error.message}" if place else str(error.message)
    return "refused by the schema"


def _compiled(file: Path) -> _Validator:
    try:
        schema: object = orjson.loads(file.read_bytes())
        return cast("_Validator", jsonschema_rs.validator_for(cast("Row", schema)))
    except OSError as error:
        what, fix = f"it cannot be read: {error.strerror}", "Check SCHEMA_PATH."
    except orjson.JSONDecodeError as error:
        what, fix = f"this is not JSON: {error}", "Correct it at that place."
    except ValueError as error:  # jsonschema-rs says so of a schema that is none
        what, fix = f"this is not a JSON Schema: {error}".partition("\n")[0], "Correct it."
    raise DeclarationError([Fault(str(file), None, "(whole file)", what, fix)])
