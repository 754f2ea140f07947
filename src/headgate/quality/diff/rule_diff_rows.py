"""Rows that came, as two revisions of a rule set see them; what cannot be read is never quoted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TypeAlias, cast

from headgate.conditions.evaluator.twin_values import Value
from headgate.declarations.refusal import Refusal
from headgate.declarations.spec_types import SqlType
from headgate.quality.compile.model import JudgedTable
from headgate.quality.compile.typed import EXTRA, MISSING
from headgate.quality.key_path import Step, read_path
from headgate.quality.report.model import MASK
from headgate.quality.report.rows import (
    is_hidden,
    masked_values,
    sensitive_columns,
    short,
)
from headgate.quality.rows import typed_value
from headgate.quality.spec.rule_set import RuleSource, RuleTable

Fields: TypeAlias = Mapping[str, object]
# No column can be called so.
UNDECLARED = "(not declared)"


@dataclass(frozen=True)
class Given:
    """A row by source (`onprem`, `cloud`), as JSON or Parquet has it; `place` is where it stood."""

    place: str
    sides: Mapping[str, Fields] = field(default_factory=dict[str, Fields])


def with_key(table: RuleTable, source: RuleSource, fields: Fields) -> Fields:
    """The row with its key as a field, where the key stands deeper in the record."""
    if source.pk_path is None or table.pk in fields:
        return fields
    found: list[object] = [fields]
    for step in read_path(source.pk_path):
        found = [item for one in found for item in _taken(one, step)]
    texts = [str(one) for one in found if one is not None]
    several = json.dumps(texts, separators=(",", ":"), ensure_ascii=False)
    return {**fields, table.pk: None if not texts else texts[0] if len(texts) == 1 else several}


def _taken(value: object, step: Step) -> list[object]:
    inner = cast("Fields", value).get(step.name) if isinstance(value, dict) else None
    if not step.is_list:
        return [inner]
    items = cast("list[object]", inner) if isinstance(inner, list) else []
    if step.index is not None:
        return items[step.index : step.index + 1]
    maps = [cast("Fields", item) for item in items if isinstance(item, dict)]
    return [item for item in maps if item.get(step.field or "") == step.text]


def typed_row(judged: JudgedTable, given: Given) -> dict[str, Value] | None:
    """The row under the keys that conditions use; None when a value does not fit its column."""
    found: dict[str, Value] = {}
    for side, source in judged.table.sources.items():
        fields = given.sides.get(side)
        if fields is None:
            continue
        before = f"{source.alias}." if judged.table.is_pair else ""
        try:
            found |= _side(judged, source, fields, before)
        except Refusal:
            return None
    return found


def _side(judged: JudgedTable, source: RuleSource, fields: Fields, before: str) -> dict[str, Value]:
    types = {key: kind for key, kind in judged.types.items() if key.startswith(before)}
    found = {key: _value(fields.get(key.removeprefix(before)), kind) for key, kind in types.items()}
    absent = [name for name in source.columns if name not in fields]
    others = [name for name in fields if before + name not in types]
    names = {before + MISSING: absent, before + EXTRA: others}
    return found | {key: ", ".join(listed) for key, listed in names.items() if listed}


def _value(value: object, kind: SqlType) -> Value:
    """As the topic's reader takes it: any JSON is text where text is declared."""
    if isinstance(value, datetime):
        return _time(value, kind)
    if kind.name in ("STRING", "JSON") and value is not None and not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False, default=str, separators=(",", ":"))
    if isinstance(value, date):
        return typed_value(value.isoformat(), kind)
    if isinstance(value, Decimal) and kind.name in ("DOUBLE", "FLOAT"):
        return float(value)
    if isinstance(value, str) and kind.is_time:
        return _text_time(value, kind)
    if kind.name == "JSON":
        return cast("str | None", value)
    return typed_value(value, kind)


def _text_time(value: str, kind: SqlType) -> Value:
    """Event times are times in UTC, with or without a zone written behind them."""
    try:
        return _time(datetime.fromisoformat(value.strip()), kind)
    except ValueError:
        raise Refusal("it is no time", "Write it as 2024-01-31T12:30:00.") from None


def _time(value: datetime, kind: SqlType) -> Value:
    utc = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    return utc.replace(tzinfo=None) if kind.name == "TIMESTAMP" else utc


def shown_key(judged: JudgedTable, given: Given, hidden: frozenset[str]) -> str:
    pk = judged.table.pk
    if is_hidden(pk, hidden):
        return MASK
    found = [fields[pk] for fields in given.sides.values() if fields.get(pk) is not None]
    return short(str(found[0])) if found else given.place


def hidden_fields(table: RuleTable) -> frozenset[str]:
    """What a person may not see: sensitive columns, and the field that a sensitive key is taken from."""
    hidden = sensitive_columns(table)
    if table.pk not in hidden:
        return hidden
    paths = [source.pk_path for source in table.sources.values() if source.pk_path]
    return hidden | {read_path(path)[0].name for path in paths}


def declared_fields(*tables: RuleTable) -> frozenset[tuple[str, str]]:
    """The columns of any of the revisions, by source."""
    return frozenset(
        (side, name)
        for table in tables
        for side, source in table.sources.items()
        for name in (table.pk, *source.columns)
    )


def masked_row(
    given: Given,
    declared: frozenset[tuple[str, str]],
    hidden: frozenset[str],
    first: frozenset[str] = frozenset(),
) -> dict[str, str]:
    """The declared columns, some of them first; of other fields, which nobody could mask, the names."""
    many = len(given.sides) > 1
    named = {
        (side, name): (f"{side}.{name}" if many else name, value)
        for wanted in (True, False)
        for side, fields in given.sides.items()
        for name, value in fields.items()
        if (name in first) is wanted
    }
    shown = dict(found for place, found in named.items() if place in declared)
    others = [found[0] for place, found in named.items() if place not in declared]
    told = {UNDECLARED: short(", ".join(others))} if others else {}
    return masked_values(json.dumps(shown, default=str), hidden) | told
