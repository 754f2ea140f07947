"""Validates a filter's document: every fault with its JSON pointer, what is wrong and what to write instead.

The first half checks one condition (keys, operator, field, type, values), the second half the document
around it. Faults are yielded as they are found, so that a caller can stop after some.
"""

from __future__ import annotations

import math
import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeAlias, TypeGuard, cast, get_args

from headgate.declarations.errors import HALF, json_pointer, suggestion
from headgate.declarations.names import SOURCE, reason_against_events
from headgate.filters.document_text import MOST_WHOLE, RoundedNumber
from headgate.filters.spec import (
    COLUMNS,
    FIELD,
    JSON_COLUMN,
    MOST_CONDITIONS,
    MOST_DEPTH,
    MOST_FIELD,
    MOST_NAME,
    MOST_TEXT,
    MOST_TOPIC,
    MOST_VALUES,
    NAME,
    NUMBER_COLUMN,
    STATUS_FIELDS,
    TOPIC,
    Op,
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
_CONDITION_KEYS = ("field", "operator", "value", "values", "min", "max", "valueType")
_PATH = re.compile(r"(?:\[\d{1,9}\])*(?:\.[A-Za-z0-9_]+(?:\[\d{1,9}\])*)*")


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
        if key not in _CONDITION_KEYS:
            known = (*_CONDITION_KEYS, "all", "any", "not")
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


_KINDS: dict[type, str] = {
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "text",
    list: "a list",
    tuple: "a list",
    dict: "an object",
    type(None): "null",
}
_GROUPS = ("all", "any", "not")
_DOCUMENT_KEYS = (
    "id",
    "name",
    "description",
    "consumerId",
    "outputTopic",
    "conditions",
    "conditionLogic",
    "enabled",
    "ops",
    "backfill",
    "source",
    *STATUS_FIELDS,
)
_NEEDED = {
    "name": 'Write for example "name": "Service Events for Dealer 001".',
    "consumerId": "Write who reads the topic.",
    "outputTopic": 'Write for example "outputTopic": "filtered-service-events-dealer-001".',
    "conditions": "Write at least one condition.",
    "enabled": 'Write "enabled": true, or false to keep it off.',
}
_NAMED = "Use lower-case letters, digits and hyphens; begin and end with a letter or digit."


@dataclass(frozen=True)
class Found:
    """One fault: where it stands, what it is, what to write instead."""

    steps: Steps
    what: str
    fix: str

    @property
    def pointer(self) -> str:
        return json_pointer(self.steps)


@dataclass
class _Count:
    conditions: int = field(default=0)


def faults_of(data: object) -> Iterator[Found]:
    """The faults of the document as they are found: a caller may stop after a number of them."""
    if not is_object(data):
        yield Found((), f"the filter is {kind_of(data)}, not an object", "Write { … }.")
        return
    yield from _keys(data)
    yield from _texts(data)
    yield from _choices(data)
    yield from _conditions(data)


def kind_of(value: object) -> str:
    """What a JSON value is, in words."""
    return next((name for kind, name in _KINDS.items() if type(value) is kind), "no JSON value")


def _keys(plain: Plain) -> Iterator[Found]:
    for key in plain:
        if key not in _DOCUMENT_KEYS:
            what = f"the key `{short(key)}` is unknown"
            yield Found((key,), what, suggestion(key, _DOCUMENT_KEYS, "keys"))
    for key, fix in _NEEDED.items():
        if plain.get(key) is None:
            yield Found((key,), f"the key `{key}` is missing", fix)


def _texts(plain: Plain) -> Iterator[Found]:
    yield from _text(plain, "id", MOST_NAME, NAME, _NAMED)
    yield from _text(plain, "name", 200)
    yield from _text(plain, "description", 2_000, least=0)
    yield from _text(plain, "consumerId", 255)
    yield from _text(plain, "outputTopic", MOST_TOPIC, NAME, _NAMED)
    fix = "A topic's name has letters, digits, `.`, `_` and `-`."
    yield from _text(plain, "source", MOST_TOPIC, TOPIC, fix)
    for key in ("outputTopic", "source"):
        if reason := reason_against_events(str(plain.get(key) or "")):
            yield Found((key,), f"is not for events: {reason}", "Name another topic.")
    # Not its own source, and not the usual one: events must not go round.
    if plain.get("outputTopic") in (SOURCE, plain.get("source", SOURCE)):
        yield Found(("outputTopic",), "it is a topic that is read", "Write to another topic.")


def _text(
    plain: Plain, key: str, most: int, pattern: str = "", fix: str = "", least: int = 1
) -> Iterator[Found]:
    value = plain.get(key)
    if value is None:
        return
    if not isinstance(value, str):
        yield Found((key,), f"must be text, not {kind_of(value)}", "Put the value in quotes.")
    elif not least <= len(value) <= most:
        yield Found((key,), f"has {len(value)} characters", f"Write {least} to {most}.")
    elif HALF.search(value):
        yield Found((key,), "has half of a character in it", "Write the character itself.")
    elif not value.isprintable():
        what = "has a character that is not printed, or turns the direction of writing"
        yield Found((key,), what, "Leave it away: people decide by what they see here.")
    elif pattern and not re.fullmatch(pattern, value):
        yield Found((key,), f"`{short(value)}` is no name for it", fix)


def _choices(plain: Plain) -> Iterator[Found]:
    yield from _choice(plain, "conditionLogic", ("AND", "OR"))
    yield from _choice(plain, "backfill", ("none", "earliest"))
    if not isinstance(plain.get("enabled", True), bool) and plain.get("enabled") is not None:
        what = f"must be true or false, not {kind_of(plain['enabled'])}"
        yield Found(("enabled",), what, "Write true or false, without quotes.")
    yield from _ops(plain.get("ops", ["c"]))


def _choice(plain: Plain, key: str, options: Sequence[str]) -> Iterator[Found]:
    value = plain.get(key, options[0])
    if value not in options:
        what = f"`{short(value)}` is none of the values it can have"
        yield Found((key,), what, suggestion(str(value), options, "values"))


def _ops(value: object) -> Iterator[Found]:
    fix = 'Write for example ["c"]: c create, u update, d delete, r snapshot read.'
    if not is_list(value) or not value:
        yield Found(("ops",), "must be a list with at least one kind of change", fix)
        return
    known, seen = get_args(Op), set[str]()
    for at, op in enumerate(value):
        if op not in known:
            yield Found(("ops", at), f"`{short(op)}` is no kind of change", fix)
            continue
        if op in seen:
            yield Found(("ops", at), f"`{op}` stands twice", "Leave one away.")
        seen.add(op)


def _conditions(plain: Plain) -> Iterator[Found]:
    value = plain.get("conditions")
    if value is None:
        return
    if not is_list(value):
        yield Found(("conditions",), f"must be a list, not {kind_of(value)}", "Write [ … ].")
        return
    if not value:
        yield Found(("conditions",), "is empty", "Write at least one condition.")
    count = _Count()
    for at, item in enumerate(value):
        yield from _condition(("conditions", at), item, count, 1)
    if count.conditions > MOST_CONDITIONS:
        what = f"there are {count.conditions} conditions"
        yield Found(("conditions",), what, f"Keep to {MOST_CONDITIONS}; `in` takes many values.")


def _condition(steps: Steps, item: object, count: _Count, depth: int) -> Iterator[Found]:
    if not is_object(item):
        yield Found(steps, f"a condition is an object, not {kind_of(item)}", "Write { … }.")
        return
    group = next((key for key in _GROUPS if key in item), None)
    if group is None or "field" in item:
        count.conditions += 1
        for key, what, fix in condition_faults(item):
            yield Found((*steps, *key), what, fix)
        return
    if depth > MOST_DEPTH:
        yield Found(steps, "groups are nested too deeply", f"Keep to {MOST_DEPTH} levels.")
        return
    for key in item:
        if key != group:
            what = f"`{short(key)}` cannot stand beside `{group}`"
            yield Found((*steps, key), what, "Put it into a group of its own.")
    yield from _group((*steps, group), item[group], count, depth)


def _group(steps: Steps, inner: object, count: _Count, depth: int) -> Iterator[Found]:
    if steps[-1] == "not":
        yield from _condition(steps, inner, count, depth + 1)
        return
    if not is_list(inner) or not inner:
        yield Found(steps, "a group is a list of at least one condition", "Write [ { … } ].")
        return
    for at, item in enumerate(inner):
        yield from _condition((*steps, at), item, count, depth + 1)
