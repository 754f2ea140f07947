"""Write a drafted manifest as YAML, each choice explained in a comment, and the JSON Schema of its rows.

Input: a draft of core/profiler. The proposed quality filters are comments: only a person knows
whether they are rules. The schema is used by the generator when VALIDATE_SCHEMA is on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from datetime import date, timedelta

import orjson

from headgate.conditions.literals import spark_identifier, spark_literal
from headgate.core.profiler.draft import Draft
from headgate.core.profiler.model import (
    ColumnProfile,
    Profile,
    about_column,
    about_event_time,
    about_key,
    about_rows,
    about_spread,
    snake_case,
)
from headgate.declarations.columns import RECORD_TIME

FEW = 12
_ENOUGH_ROWS = 100
_LONGEST_VALUE = 40


def proposed_filters(profile: Profile, event_time: str) -> tuple[str, ...]:
    """Conditions of the closed language that all rows looked at fulfil."""
    return tuple(
        text for column in profile.columns for text in _proposals(column, profile, event_time)
    )


def _proposals(column: ColumnProfile, profile: Profile, event_time: str) -> Iterator[str]:
    name = spark_identifier(column.name)
    if column.name == event_time:
        yield from _days(column, name)
    elif column.kind in ("whole", "real", "decimal") and column.low is not None:
        yield _or_null(column, _range(column, name))
    elif _is_list(column, profile):
        yield _or_null(column, f"{name} IN ({', '.join(map(spark_literal, column.values))})")


def _or_null(column: ColumnProfile, condition: str) -> str:
    if not column.nulls:
        return condition
    return f"{spark_identifier(column.name)} IS NULL OR {condition}"


def _range(column: ColumnProfile, name: str) -> str:
    low, high = float(column.low or 0), float(column.high or 0)
    if low < 0:
        return f"{name} BETWEEN {_number(low)} AND {_number(high)}"
    return f"{name} >= {1 if low == 1 else 0}"


def _number(value: float) -> str:
    """Digits as a person would write them."""
    return f"{value:.0f}" if value.is_integer() and abs(value) < 1e15 else f"{value!r}"


def _is_list(column: ColumnProfile, profile: Profile) -> bool:
    texts = [value for value in column.values if isinstance(value, str)]
    few = 1 < len(texts) == column.distinct <= FEW
    return (
        few
        and profile.looked.rows >= _ENOUGH_ROWS
        and all(len(text) <= _LONGEST_VALUE and text.isprintable() for text in texts)
    )


def _days(column: ColumnProfile, name: str) -> Iterator[str]:
    """From the first day to the last; rows of other days would be kept out."""
    try:
        first, last = (date.fromisoformat(str(text)[:10]) for text in (column.low, column.high))
        after = last + timedelta(days=1)
    except (ValueError, OverflowError):
        return
    yield f"CAST({name} AS DATE) >= DATE '{first}'"
    yield f"CAST({name} AS DATE) < DATE '{after}'"


_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_YAML_WORDS = frozenset("y n yes no on off true false null".split())


def draft_text(draft: Draft) -> str:
    """The manifest as YAML text."""
    parts = [_head(draft), _places(draft), _times(draft), _columns(draft), _keys(draft)]
    return "\n\n".join("\n".join(part) for part in (*parts, _filters(draft))) + "\n"


def _head(draft: Draft) -> Iterator[str]:
    yield f"# {draft.name}: drafted from {_comment(draft.profile.file)}."
    yield from (f"# {line}" for line in about_rows(draft.profile))
    yield "# It is yours now: read it, correct it, then `headgate dataset check`. What each key means also"
    yield "# stands in schemas/dataset.schema.json; editors can check the file with it."


def _places(draft: Draft) -> Iterator[str]:
    stem = snake_case(draft.name)
    yield "manifest_version: 1"
    yield f"name: {_text(draft.name)}"
    yield "# The topic that is read, and where the records go that cannot be rows."
    yield f"topic: {_text(f'{draft.name}.events')}"
    yield f"dlq_topic: {_text(f'{draft.name}.events.dlq')}"
    yield "# Raw rows, and clean ones, as schema.table."
    yield f"bronze_table: bronze.raw_{stem}"
    yield f"silver_table: silver.cleaned_{stem}"
    yield "# What becomes of fields that nobody declared: evolve makes them columns of bronze, freeze keeps"
    yield "# them as JSON in one column, quarantine makes the record a dead letter."
    yield "contract: evolve"


def _times(draft: Draft) -> Iterator[str]:
    if draft.event_time == RECORD_TIME:
        yield "# The events have no time of their own that could be used: it is when their record came to"
        yield "# the topic."
    else:
        yield "# When the event happened."
    if draft.other_times:
        yield f"# Others that could be it: {', '.join(map(_comment, draft.other_times))}."
    yield f"event_ts_col: {_text(draft.event_time)}"
    yield "# The Java pattern of all times in the event; what not every time has stands in brackets."
    yield f"ts_format: {_text(draft.ts_format.replace(chr(39), chr(39) * 2))}"
    yield "# Silver is partitioned by this date."
    yield f"partition_date_col: {_text(draft.partition_date_col)}"
    day = f"CAST({spark_identifier(draft.event_time)} AS DATE)"
    yield f"partition_date_expr: {_text(day)}"
    yield "# The name of silver's surrogate key, made of the surrogate_key_fields below."
    yield f"surrogate_key_name: {_text(draft.surrogate_key_name)}"
    if draft.key_field:
        yield "# The message key: records with equal values keep their order in one partition."
        yield from (f"# {line}" for line in about_spread(draft.profile.column(draft.key_field)))
        yield f"key_field: {_text(draft.key_field)}"


def _columns(draft: Draft) -> Iterator[str]:
    yield "# One entry for each field of the event. name: as in the event, case and all; kafka_type: its"
    yield "# type in the topic's JSON; bronze_type: as it is kept raw; silver_name and silver_type: as it"
    yield "# is used. A value that does not fit kafka_type or bronze_type makes a dead letter; one that"
    yield "# does not fit silver_type is filtered."
    yield "columns:"
    for at, (column, silver) in enumerate(zip(draft.columns, draft.silver_names, strict=True)):
        if at:
            yield ""
        yield from _column(column, silver, draft)


def _column(column: ColumnProfile, silver: str, draft: Draft) -> Iterator[str]:
    yield from (f"  # {_comment(line)}" for line in about_column(column, draft.profile.looked.rows))
    yield f"  - name: {_text(column.name)}"
    yield f"    kafka_type: {_type(column.kafka_type)}"
    yield f"    bronze_type: {_type(column.bronze_type)}"
    yield f"    silver_name: {_text(silver)}"
    silver_type = "DATE" if column.kind == "date" else column.bronze_type
    yield f"    silver_type: {_type(silver_type)}"
    if column.name == draft.event_time:
        yield "    is_event_ts: true"


def _keys(draft: Draft) -> Iterator[str]:
    yield "# Rows with equal values in all of these are one event: silver keeps the newest record of it."
    yield from (f"# {_comment(line)}" for line in about_key(draft.key, draft.profile))
    yield from _list("dedup_key", draft.key.columns)
    yield ""
    yield "# The columns that the surrogate key is made of."
    yield from _list("surrogate_key_fields", draft.key.columns)


def _filters(draft: Draft) -> Iterator[str]:
    yield "# A row that fails one of these stays in bronze and is counted as filtered. NULL passes only"
    yield "# where a filter says so."
    yield from (f"# {line}" for line in about_event_time(draft.profile, draft.event_time))
    yield from _list("quality_filters", [f"{spark_identifier(draft.event_time)} IS NOT NULL"])
    proposals = proposed_filters(draft.profile, draft.event_time)
    if proposals:
        yield "  # All rows looked at fulfil these too. Take the # away where it is a rule and no accident:"
        yield from (f"  # - {_text(text)}" for text in proposals)


def _list(key: str, items: Iterable[str]) -> Iterator[str]:
    yield f"{key}:"
    yield from (f"  - {_text(item)}" for item in items)


def _type(text: str) -> str:
    return f'"{text}"' if "," in text else text


def _text(text: str) -> str:
    """A YAML scalar that reads back as exactly this text."""
    if _PLAIN.fullmatch(text) and text.lower() not in _YAML_WORDS:
        return text
    return json.dumps(text, ensure_ascii=not text.isprintable())


def _comment(text: str) -> str:
    """Nothing in a comment may end its line or be a character that YAML does not know."""
    return text if text.isprintable() else json.dumps(text)[1:-1]


_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_TYPES = {"whole": "integer", "real": "number", "decimal": "number", "boolean": "boolean"}
_DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"


def row_schema(draft: Draft) -> str:
    """Every field is there and has its type; the event time and the key are never null."""
    strict = {draft.event_time, *draft.key.columns}
    content = {
        "$schema": _DRAFT,
        "title": draft.name,
        "description": "One row as the generator sends it. Used with VALIDATE_SCHEMA=true: "
        "a row that does not fit goes to the dead-letter topic.",
        "type": "object",
        "required": [column.name for column in draft.columns],
        "properties": {
            c.name: _property(c, optional=bool(c.nulls) or c.name not in strict)
            for c in draft.columns
        },
    }
    return orjson.dumps(content, option=orjson.OPT_INDENT_2).decode() + "\n"


def _property(column: ColumnProfile, *, optional: bool) -> dict[str, object]:
    if column.kind == "nested":
        return {}
    name = _TYPES.get(column.kind, "string")
    pattern = {"pattern": f"^{_DAY}"} if column.kind in ("time", "date") else {}
    return {"type": [name, "null"] if optional else name, **pattern}
