"""Values of the source as a column of Cassandra takes them: exactly, or not at all."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal

BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64, "counter": 64, "varint": 4096}
_TEXTS = ("text", "varchar", "ascii")


class InexactError(ValueError):
    """The column has no such value."""


def column_value(value: object, cql_type: str) -> object:
    """The value as the driver takes it; InexactError where the column would hold another one.

    A timestamp alone is cut to milliseconds: Cassandra has no finer ones, and no hash sees them.
    """
    if value is None:
        return None
    make = _MAKERS.get(cql_type)
    if make is None:
        return value
    try:
        return make(value, cql_type)
    except InexactError:
        raise
    except (ValueError, TypeError, ArithmeticError) as error:
        raise InexactError(str(error)) from error


def _text(value: object, cql_type: str) -> object:
    if isinstance(value, (bool, bytes, list, tuple, dict)):
        raise InexactError("it has more than one text")
    text = value if isinstance(value, str) else str(value)
    if cql_type == "ascii":
        text.encode("ascii")
    return text


def _whole(value: object, cql_type: str) -> object:
    number = _decimal(value, cql_type)
    if number != number.to_integral_value():
        raise InexactError("it is not whole")
    limit = 1 << BITS[cql_type] - 1
    if not -limit <= int(number) < limit:
        raise InexactError(f"it is beyond {cql_type}")
    return int(number)


def _decimal(value: object, _type: str) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, (int, float, str, Decimal)):
        raise InexactError("it is no number")
    found = value if isinstance(value, Decimal) else Decimal(str(value))
    if not found.is_finite():
        raise InexactError("it is no number")
    return found


def _double(value: object, cql_type: str) -> object:
    if isinstance(value, float) and cql_type == "double":
        return value
    number = float(str(value)) if isinstance(value, (str, Decimal)) else _float(value)
    if cql_type == "float":
        single: float = struct.unpack("f", struct.pack("f", number))[0]
        if single != number and not _is_written(f"{single:.7g}", value) and number == number:
            raise InexactError("a float has not so many digits")
    elif not isinstance(value, float) and not _is_written(repr(number), value):
        raise InexactError("a double has not so many digits")
    return number


def _float(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InexactError("it is no number")
    return float(value)


def _is_written(text: str, value: object) -> bool:
    """Whether the shortest text of the number is the decimal that is to be written."""
    return not isinstance(value, float) and Decimal(text) == Decimal(str(value))


def _boolean(value: object, _type: str) -> object:
    if not isinstance(value, bool):
        raise InexactError("it is neither true nor false")
    return value


def _uuid(value: object, _type: str) -> object:
    return value if isinstance(value, uuid.UUID) else uuid.UUID(str(value))


def _date(value: object, _type: str) -> object:
    if isinstance(value, datetime):
        if value.time() != time(0):
            raise InexactError("it has a time of day")
        return value.date()
    return value if isinstance(value, date) else date.fromisoformat(str(value))


def _timestamp(value: object, _type: str) -> object:
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day)
    return value if isinstance(value, datetime) else datetime.fromisoformat(str(value))


_MAKERS: dict[str, Callable[[object, str], object]] = {
    **dict.fromkeys(_TEXTS, _text),
    **dict.fromkeys(BITS, _whole),
    **dict.fromkeys(("double", "float"), _double),
    **dict.fromkeys(("uuid", "timeuuid"), _uuid),
    "decimal": _decimal,
    "boolean": _boolean,
    "date": _date,
    "timestamp": _timestamp,
}
