"""What is wrong with a filter's document: everything at once, each with its JSON pointer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import get_args

from headgate.declarations.json_pointer import json_pointer
from headgate.declarations.refusal import suggestion
from headgate.declarations.topic_names import reason_against_events
from headgate.filters.filter_conditions import (
    HALF,
    Plain,
    Steps,
    condition_faults,
    is_list,
    is_object,
    short,
)
from headgate.filters.spec import (
    MOST_CONDITIONS,
    MOST_DEPTH,
    MOST_NAME,
    MOST_TOPIC,
    NAME,
    SOURCE,
    STATUS_FIELDS,
    TOPIC,
    Op,
)

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
_KNOWN = (
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
        if key not in _KNOWN:
            what = f"the key `{short(key)}` is unknown"
            yield Found((key,), what, suggestion(key, _KNOWN, "keys"))
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
