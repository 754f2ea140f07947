"""What is wrong with one condition of a filter: its keys, operator, field and values."""

from __future__ import annotations

import math
import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias, TypeGuard, cast, get_args

from headgate.declarations.refusal import suggestion
from headgate.filters.document_text import MOST_WHOLE, RoundedNumber
from headgate.filters.spec import (
    COLUMNS,
    FIELD,
    JSON_COLUMN,
    MOST_FIELD,
    MOST_TEXT,
    MOST_VALUES,
    NUMBER_COLUMN,
    Operator,
    ValueType,
)

Steps: TypeAlias = tuple[str | int, ...]
Told: TypeAlias = Iterator[tuple[Steps, str, str]]
Read: TypeAlias = Generator[tuple[Steps, str, str], None, str | None]
Plain: TypeAlias = Mapping[str, Any]
OPERATORS: tuple[str, ...] = get_args(Operator)
VALUE_TYPES: tuple[str, ...] = get_args(ValueType)
# What each operator asks for beside the field.
NEEDS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(OPERATORS, ("value",)),
    "in": ("values",),
    "notIn": ("values",),
    "between": ("min", "max"),
    "isNull": (),
    "isNotNull": (),
}
_ORDERED = ("greaterThan", "greaterThanOrEqual", "lessThan", "lessThanOrEqual", "between")
_OTHER_NAMES = {
    **dict.fromkeys(("=", "==", "eq", "is"), "equals"),
    **dict.fromkeys(("!=", "<>", "ne", "not_equals", "notEquals"), "notIn"),
    **dict.fromkeys((">", "gt"), "greaterThan"),
    **dict.fromkeys((">=", "gte", "ge"), "greaterThanOrEqual"),
    **dict.fromkeys(("<", "lt"), "lessThan"),
    **dict.fromkeys(("<=", "lte", "le"), "lessThanOrEqual"),
    **dict.fromkeys(("contains", "starts_with", "startsWith", "ends_with", "endsWith"), "matches"),
    **dict.fromkeys(("like", "regex", "rlike", "regexp"), "matches"),
    **dict.fromkeys(("exists", "not_null", "notNull"), "isNotNull"),
}
_KNOWN = ("field", "operator", "value", "values", "min", "max", "valueType")
_PATH = re.compile(r"(?:\[\d{1,9}\])*(?:\.[A-Za-z0-9_]+(?:\[\d{1,9}\])*)*")
HALF = re.compile("[\ud800-\udfff]")


def is_object(value: object) -> TypeGuard[Plain]:
    """Whether it is a JSON object; its keys are text, or it came from no JSON."""
    keys = cast("dict[object, object]", value) if isinstance(value, dict) else None
    return keys is not None and all(isinstance(key, str) for key in keys)


def is_list(value: object) -> TypeGuard[Sequence[Any]]:
    """Whether it is a JSON list."""
    return isinstance(value, list | tuple)


def condition_faults(plain: Plain) -> Told:
    """Where in the condition, what is wrong, what to write instead."""
    for key in plain:
        if key not in _KNOWN:
            known = (*_KNOWN, "all", "any", "not")
            yield (key,), f"the key `{short(key)}` is unknown", suggestion(key, known, "keys")
    field = yield from _field(plain)
    operator = yield from _operator(plain)
    kind = yield from _kind(plain, field)
    if operator is not None and kind is not None:
        yield from _fits(operator, kind, field)
        yield from _values(plain, operator, kind)


def _field(plain: Plain) -> Read:
    value = plain.get("field")
    if not isinstance(value, str):
        yield ("field",), "the field is missing", f"Write one of {', '.join(COLUMNS)}."
        return None
    if len(value) > MOST_FIELD:
        yield ("field",), f"has {len(value)} characters", f"Write a path of at most {MOST_FIELD}."
        return None
    column = re.split(r"[.\[]", value, maxsplit=1)[0]
    if column not in COLUMNS:
        yield ("field",), f"there is no field `{short(value)}`", _field_fix(value, column)
        return None
    rest = value[len(column) :]
    if not re.fullmatch(FIELD, value) or _PATH.fullmatch(rest) is None:
        fix = "Write for example header_data.items[0].price."
        yield ("field",), f"`{short(value)}` is no path", fix
        return None
    if rest and column != JSON_COLUMN:
        yield ("field",), f"`{column}` has no parts", f"Only {JSON_COLUMN} is JSON; write {column}."
        return None
    return value


def _field_fix(value: str, column: str) -> str:
    near = suggestion(column, COLUMNS, "fields")
    if near.startswith("Did") or not re.fullmatch(FIELD, value):
        return near
    return f"{near} A field of the event's JSON is written {JSON_COLUMN}.{value}."


def _operator(plain: Plain) -> Read:
    value = plain.get("operator")
    if value in OPERATORS:
        return value
    if value is None:
        what, fix = "the operator is missing", f"Write one of {', '.join(OPERATORS)}."
    else:
        what = f"there is no operator `{short(value)}`"
        meant = _OTHER_NAMES.get(str(value))
        fix = (
            f"Did you mean `{meant}`?" if meant else suggestion(str(value), OPERATORS, "operators")
        )
    yield ("operator",), what, fix
    return None


def _kind(plain: Plain, field: str | None) -> Read:
    usual = "number" if field == NUMBER_COLUMN and "valueType" not in plain else "string"
    value = plain.get("valueType", usual)
    if value in VALUE_TYPES:
        return value
    what = f"there is no valueType `{short(value)}`"
    yield ("valueType",), what, suggestion(str(value), VALUE_TYPES, "types")
    return None


def _fits(operator: str, kind: str, field: str | None) -> Told:
    """Whether this can be asked of such a value at all."""
    if field == NUMBER_COLUMN and kind != "number":
        yield ("valueType",), f"`{field}` is a number", 'Write "valueType": "number".'
    if operator == "matches" and kind != "string":
        yield ("valueType",), "a pattern is matched on text", 'Write "valueType": "string".'
    if operator == "matches" and field == NUMBER_COLUMN:
        yield ("operator",), "a pattern is matched on text", "Use a comparison."
    if operator in _ORDERED and kind == "boolean":
        yield ("operator",), "true and false have no order", "Use equals."
    if operator in ("isNull", "isNotNull") and kind != "string" and field != NUMBER_COLUMN:
        fix = "Leave valueType away: what is asked is whether there is a value."
        yield ("valueType",), f"`{operator}` compares nothing", fix


def _values(plain: Plain, operator: str, kind: str) -> Told:
    needs = NEEDS[operator]
    for key in ("value", "values", "min", "max"):
        if key in needs and plain.get(key) is None:
            yield (key,), f"`{operator}` needs `{key}`", _example(key, kind)
        elif key not in needs and plain.get(key) not in (None, [], ()):
            wanted = " and ".join(f"`{need}`" for need in needs) or "nothing"
            yield (key,), f"`{operator}` has no `{key}`", f"It takes {wanted}."
        elif key in needs:
            yield from _given(key, plain[key], kind)


def _given(key: str, value: object, kind: str) -> Told:
    if key != "values":
        yield from _value((key,), value, kind)
    elif not is_list(value) or not value:
        yield (key,), "must be a list with at least one value", _example(key, kind)
    elif len(value) > MOST_VALUES:
        yield (key,), f"has {len(value)} values", f"Keep to {MOST_VALUES}."
    else:
        for at, one in enumerate(value):
            yield from _value((key, at), one, kind)


def _value(steps: Steps, value: object, kind: str) -> Told:
    match kind:
        case "number" if isinstance(value, int | float) and not isinstance(value, bool):
            yield from _number(steps, value)
        case "boolean" if isinstance(value, bool):
            return
        case "string" if isinstance(value, str):
            yield from _string(steps, value)
        case "timestamp" if isinstance(value, str):
            if _time(value) is None:
                fix = "Write it as 2025-01-31T12:30:00Z."
                yield steps, f"`{short(value)}` is no time", fix
        case _:
            yield steps, f"{_named(value)} is no {kind}", _other_kind(value, kind)


def _number(steps: Steps, value: float) -> Told:
    if isinstance(value, float) and not math.isfinite(value):
        yield steps, "the number is not finite", "Use a smaller number."
    elif isinstance(value, RoundedNumber) or (isinstance(value, int) and abs(value) > MOST_WHOLE):
        fix = 'Write it in quotes, with "valueType": "string".'
        yield steps, f"{short(value)} is beyond what is compared exactly", fix


def _string(steps: Steps, value: str) -> Told:
    if len(value) > MOST_TEXT:
        yield steps, f"the text has {len(value)} characters", f"Keep to {MOST_TEXT}."
    elif HALF.search(value):
        yield steps, "the text has half of a character in it", "Write the character itself."


def _time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _named(value: object) -> str:
    if isinstance(value, str):
        return f"the text `{short(value)}`"
    if isinstance(value, bool | int | float):
        return f"`{str(value).lower()}`"
    return "null" if value is None else "a list or an object"


def _other_kind(value: object, kind: str) -> str:
    if isinstance(value, bool):
        return 'Write "valueType": "boolean", or put the value in quotes.'
    if isinstance(value, int | float) and kind == "string":
        return 'Write "valueType": "number", or put the value in quotes.'
    if isinstance(value, str):
        return f'Leave the quotes away, or write "valueType": "string" instead of {kind}.'
    return f"Write a {kind}."


def _example(key: str, kind: str) -> str:
    values = {"number": "100", "boolean": "true", "timestamp": '"2025-01-31T12:30:00Z"'}
    one = values.get(kind, '"DEALER-001"')
    return f'Write "{key}": [{one}].' if key == "values" else f'Write "{key}": {one}.'


def short(value: object) -> str:
    """A value in a message: whole characters, and not too many of them."""
    text = HALF.sub("?", str(value))
    return text if len(text) <= 40 else text[:39] + "…"
